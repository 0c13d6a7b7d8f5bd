// Package idempotency keeps the first answer to each request that has an
// idempotency key, in SQLite, so that a repetition gets it even after a
// restart.
//
// A [Store] is one file of one agent's process. Replicas of an agent have one
// each, and do not know each other's: a repetition that reaches another
// replica runs again. Package transport/nats/once is a store that they share.
package idempotency
