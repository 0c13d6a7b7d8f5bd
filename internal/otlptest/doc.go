// Package otlptest runs collectors of OTLP for tests: small and real ones, which take spans
// and log records by HTTP and by gRPC, and refuse what a test wants refused.
package otlptest
