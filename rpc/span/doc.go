// Package span is what a trace says of one piece of work: its place in the trace (W3C
// Trace Context), its times, and what it was, in the names of OpenTelemetry's semantic
// conventions, all of which stand in names.go. It knows no library of OpenTelemetry and no
// way to send anything: a [Tracer] takes spans that have ended, and a nil one costs a
// comparison.
//
// A span is made in two steps. Its trace context is there from the beginning, because
// messages carry it; everything else is put together at the end, and only for a trace that
// is sampled:
//
//	own := span.Continue(tracer, parent)
//	… the work, whose messages carry own …
//	if span.Recorded(tracer, own) {
//		tracer.End(&span.Span{Parent: parent, Traceparent: own, …})
//	}
//
// A span never has a payload, nor the text of an error: codes alone.
package span
