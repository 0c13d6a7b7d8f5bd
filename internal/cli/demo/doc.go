// Package demo implements `agentd demo`: it runs the sample fleet in this
// process, makes four calls that show what agentd does (a valid one, a request
// and a response that break their schemas, and an unknown peer), and then shows
// the audit records of these calls.
package demo
