// Package durable keeps calls on JetStream: requests until they are answered,
// answers until they are fetched, and what could not be served for a person.
//
// Everything about the calls to an agent is in three streams of its own, which it
// makes when it starts: AGENTD_REQUESTS_<agent> is a work queue,
// AGENTD_RESULTS_<agent> holds one answer for each call, under a subject that names
// the caller, and AGENTD_DEAD_<agent> the dead letters. What an agent must know of
// the calls that it has made is in a key-value bucket, agentd-calls-<agent>.
package durable
