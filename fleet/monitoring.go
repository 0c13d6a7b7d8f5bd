package fleet

import (
	"cmp"
	"time"

	"github.com/agentd/agentd/internal/secretref"
	"github.com/agentd/agentd/internal/strictyaml"
)

// Monitoring configures what machines may ask of a running member over HTTP: probes, metrics and
// profiles.
type Monitoring struct {
	// Listen is where the member serves it, <host>:<port>; "" for nowhere, unless the command line
	// says so.
	Listen string
	// Insecure permits plain HTTP beyond this machine.
	Insecure bool
	// TLS is the certificate that Listen is served with; nil serves plain HTTP.
	TLS *MCPTLS
	// Hosts are the names, besides those of loopback addresses and IP addresses, that requests
	// without the token may call the server by.
	Hosts []string
	// Token is a reference to the bearer token that metrics and profiles take, or "".
	Token string
	// Profiles serves profiles of the process.
	Profiles bool
	// Objectives are how long requests may take.
	Objectives Objectives
}

// DefaultLatencyObjective is how long a request may take where the files do not say.
const DefaultLatencyObjective = time.Second

// Objectives say how long the requests of an agent may take. They refuse none: one that takes
// longer is counted as slow, and an alert fires for too many.
type Objectives struct {
	// Latency is that of capabilities without one of their own.
	Latency time.Duration
	// Capabilities are those of single capabilities, in declared order.
	Capabilities []CapabilityObjective
}

// A CapabilityObjective is how long the requests for one capability may take.
type CapabilityObjective struct {
	Capability string
	Latency    time.Duration
	Position   Position
}

// Of is how long a request for a capability may take.
func (o *Objectives) Of(capability string) time.Duration {
	for _, one := range o.Capabilities {
		if one.Capability == capability {
			return one.Latency
		}
	}
	return cmp.Or(o.Latency, DefaultLatencyObjective)
}

// decodeObjectives reads monitoring.objectives.
func decodeObjectives(v strictyaml.Value) (objectives Objectives) {
	if !v.Present() {
		return objectives
	}
	o := v.Object()
	defer o.Done()
	objectives.Latency = o.Get("latencyMs").Millis(maxDuration)
	for _, e := range o.Get("capabilities").Entries() {
		one := e.Value.Object()
		objectives.Capabilities = append(objectives.Capabilities, CapabilityObjective{e.Name, one.Need("latencyMs").Millis(maxDuration), e.Value.Position()})
		one.Done()
	}
	return objectives
}

// SecretFiles are the paths of the secrets that the block names: no skill may read them.
func (m *Monitoring) SecretFiles() (paths []string) {
	if m.Token != "" {
		paths = secretref.Files(m.Token)
	}
	if m.TLS != nil {
		paths = append(paths, m.TLS.Key)
	}
	return paths
}

// files are the paths of the files that the block names.
func (m *Monitoring) files() []string {
	paths := m.SecretFiles()
	if m.TLS != nil {
		paths = append(paths, m.TLS.Cert)
	}
	return paths
}

// decodeMonitoring reads the block monitoring.
func decodeMonitoring(v strictyaml.Value, p paths) (m Monitoring) {
	if !v.Present() {
		return m
	}
	o := v.Object()
	defer o.Done()
	m.Objectives = decodeObjectives(o.Get("objectives"))
	listen := o.Get("listen")
	m.Listen = decodeListen(listen)
	m.Insecure, m.Profiles = o.Get("insecure").Bool(), o.Get("pprof").Bool()
	m.TLS, m.Hosts = decodeMCPTLS(o.Get("tls"), p), decodeHostNames(o.Get("hosts"))
	m.Token = decodeClientToken(o.Get("token"))
	switch {
	case m.Listen == "" || Loopback(m.Listen):
	case m.TLS == nil && !m.Insecure:
		listen.Fault("metrics, and the token if there is one, would cross the network in the clear", "add tls: {cert: …, key: …}, or insecure: true where the network itself is trusted")
	case m.Profiles && m.Token == "":
		o.Get("pprof").Fault("everybody on the network could read the memory of the process", "add token: env:…, or listen on a loopback address")
	}
	return m
}
