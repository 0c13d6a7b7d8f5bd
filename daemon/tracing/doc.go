// Package tracing samples the traces of an agent's calls and sends their spans to a
// collector, as the standard OTEL_* variables ask for it. Without an endpoint there is no
// [Tracer], and nothing of it runs.
//
// Spans are put into OTLP's form, and sent, by a goroutine of their own. A collector that
// hangs or is away costs spans, which are counted, and never time.
package tracing
