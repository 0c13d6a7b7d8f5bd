// Package collector holds what agentd sends by OTLP against the receiver of the OpenTelemetry
// Collector, which is where it goes in production. There is no code but the tests. They are a
// module of their own, so that the Collector is no dependency of agentd.
package collector
