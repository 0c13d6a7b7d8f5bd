// Package otlp sends signals to a collector: OTLP over HTTP and over gRPC, as the standard
// OTEL_* variables ask for it. A [Client] makes one request; a [Queue] gathers what a
// program emits, never makes it wait, and tells when the collector is away and when it is
// back.
//
// It speaks both protocols by net/http. A gRPC request of one message is an HTTP/2 request
// with five bytes before the message and a trailer behind it, and grpc-go, which the
// exporters of OpenTelemetry's own library bring even for HTTP, would add 11 MB to the
// program and 6 MB to the memory of every process, with traces or without.
package otlp
