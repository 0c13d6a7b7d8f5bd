// Package history is the capability history: the agent's own calls and tool calls, read
// from its access log. It changes nothing.
//
//	capabilities:
//	  history: {}
//
// What runs in a call of a tenant sees the calls of that tenant, and what runs in a call
// without one, or in none, those without. Payloads are in no record, and so in no answer.
package history
