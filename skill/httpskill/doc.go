// Package httpskill runs a skill as requests to a web service of the user's: each call is one
// request with the payload as its body, and the answer is the body of the response.
// docs/skills.md describes the exchange to the service's author.
//
// The service is trusted with the calls that it serves and with nothing else: it is reached
// within the bounds of package netguard, its answers are bounded and judged as those of any
// skill, redirects are refused, and what it says of a failure reaches the caller only where
// it says that it is meant for the caller.
//
// Where to look: skill.go sends the request, outcome.go judges the response.
package httpskill
