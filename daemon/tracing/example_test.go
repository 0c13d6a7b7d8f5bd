package tracing_test

import (
	"fmt"

	"github.com/agentd/agentd/daemon/tracing"
)

// What the standard variables ask for.
func ExampleFromEnv() {
	env := map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318",
		"OTEL_TRACES_SAMPLER":         "parentbased_traceidratio",
		"OTEL_TRACES_SAMPLER_ARG":     "0.01",
	}
	cfg, _, err := tracing.FromEnv(func(name string) string { return env[name] })
	fmt.Println(cfg.To.Endpoint, cfg.To.Protocol, cfg.Sampler.Ratio, err)
	// Output: http://collector:4318/v1/traces http/protobuf 0.01 <nil>
}
