// Package discovery makes an agent known as a NATS micro service (ADR-32), so
// that any NATS tool finds it, and finds others.
//
// Requests do not go through the micro framework, which takes them in a form of
// its own: an announcement only answers $SRV.PING, $SRV.INFO and $SRV.STATS, and
// its endpoints are where the agent takes requests already.
package discovery
