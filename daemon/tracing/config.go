package tracing

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"os"
	"strings"

	"github.com/agentd/agentd/internal/otlp"
)

// A Config says which spans go where.
type Config struct {
	// To is the collector. Required.
	To otlp.Config
	// Batch bounds what waits.
	Batch otlp.Batch
	// Sampler decides which traces are recorded.
	Sampler Sampler
	// PeerLimit is how many traces a second each peer, and all without a proof of theirs
	// together, may have recorded that have begun elsewhere. 0 is any number.
	PeerLimit int
	// Resource describes the process, by the names of OpenTelemetry. What an agent knows of
	// itself is added where it is not there: service.name, service.instance.id and others.
	Resource map[string]string
}

// FromEnv reads the OTEL_* variables. The configuration is nil where traces are off, which
// they are without an endpoint. warnings are about variables that are not understood.
func FromEnv(getenv func(string) string) (cfg *Config, warnings []string, err error) {
	to, warnings, err := otlp.FromEnv(getenv, otlp.Traces)
	if to == nil || err != nil {
		return nil, warnings, err
	}
	cfg = &Config{To: *to, Batch: otlp.BatchFromEnv(getenv, otlp.Traces)}
	var wrong error
	if cfg.Sampler, wrong = ParseSampler(getenv("OTEL_TRACES_SAMPLER"), getenv("OTEL_TRACES_SAMPLER_ARG")); wrong != nil {
		warnings = append(warnings, wrong.Error())
	}
	if cfg.PeerLimit, wrong = ParsePeerLimit(getenv("AGENTD_TRACES_PEER_LIMIT")); wrong != nil {
		warnings = append(warnings, wrong.Error())
	}
	if cfg.Resource, wrong = ResourceFromEnv(getenv); wrong != nil {
		warnings = append(warnings, wrong.Error())
	}
	return cfg, warnings, nil
}

// ResourceFromEnv reads OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME.
func ResourceFromEnv(getenv func(string) string) (map[string]string, error) {
	all := map[string]string{}
	var wrong error
	for pair := range strings.SplitSeq(getenv("OTEL_RESOURCE_ATTRIBUTES"), ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		decoded, err := url.PathUnescape(strings.TrimSpace(value))
		if key = strings.TrimSpace(key); !ok || key == "" || err != nil {
			wrong = fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %.64q is not key=value", pair)
			continue
		}
		all[key] = decoded
	}
	if name := getenv("OTEL_SERVICE_NAME"); name != "" {
		all["service.name"] = name
	}
	return all, wrong
}

// Resource completes what describes the process by what an agent knows of itself. An empty
// agent is a process that runs several, whose signals are those of the service agentd.
func Resource(given map[string]string, agent, fleet, version string) map[string]string {
	host, _ := os.Hostname() // "" where the system does not say
	service := cmp.Or(agent, "agentd")
	all := map[string]string{
		"service.name": service, "service.namespace": fleet, "service.version": version,
		"service.instance.id": service + "@" + cmp.Or(host, "localhost"), "host.name": host, "agentd.agent": agent,
		"telemetry.sdk.language": "go", "telemetry.sdk.name": "agentd", "telemetry.sdk.version": version,
	}
	maps.Copy(all, given)
	return all
}
