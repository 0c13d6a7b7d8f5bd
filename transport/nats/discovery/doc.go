// Package discovery announces an agent as a NATS micro service (ADR-32), so that any
// NATS tool finds it, and finds other services.
//
// Calls do not go through the micro framework, which has a request format of its own:
// an announcement only answers $SRV.PING, $SRV.INFO and $SRV.STATS. Its endpoints name
// the subject where the agent accepts requests anyway.
package discovery
