// Package record is the model of an audit log: what callers append ([Record]),
// what the log returns ([Entry]), and the bodies of the records that the log
// writes about itself ([Redaction], [Pruning], [KeyChange]).
//
// It validates records, brings their bodies into canonical form and computes
// the digest of their content ([Prepared]). Package chainhash defines the bytes
// that are hashed; package auditchain re-exports the types that callers need.
package record
