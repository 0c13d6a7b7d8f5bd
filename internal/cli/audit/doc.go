// Package audit implements `agentd audit`: it finds the audit logs of a fleet,
// reads them (query, stats, export), checks them (verify, prove, verify-proof),
// and changes them (redact, prune, rotate-key, quarantine,
// compact).
//
// Reading opens the database files directly, also while agents write to them.
// A change goes through the agent that has the log open, because a log has a
// single writer.
package audit
