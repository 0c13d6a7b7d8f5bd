// Package bench is `agentd bench`: it makes calls to a capability of a running fleet, at a
// rate or as fast as some callers can, and shows how long they take and what becomes of
// them.
package bench
