package fleet

import (
	"fmt"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/capability/gojsonschema"
	"github.com/agentd/agentd/envelope"
)

// plugged returns the engines that agent.yaml can select besides the native
// one. Package capability defines the seam and imports no engine; this is
// where engines are plugged in.
func plugged() []capability.Engine { return []capability.Engine{gojsonschema.Engine{}} }

// engineNames returns the values of agent.yaml's key validator, the default
// first.
func engineNames() []string {
	names := []string{capability.Native{}.Name()}
	for _, e := range plugged() {
		names = append(names, e.Name())
	}
	return names
}

// capabilityOptions returns the options for the capabilities file at path,
// which must declare agent.
func (l *loader) capabilityOptions(path string, agent envelope.Address) capability.LoadOptions {
	return capability.LoadOptions{
		ValidateSchemas: !l.opts.InspectOnly, Agent: agent, Name: l.name(path), SecondOpinion: l.opinion,
	}
}

// engined is a document under an engine of that name.
type engined struct {
	document *capability.Document
	engine   string
}

// selectEngine gives a member the validator that its agent.yaml names, for its
// own contracts and for its view of its peers'. Two members may look at one
// peer through different validators.
func (l *loader) selectEngine(m *Member) {
	if m.Agent == nil || m.Agent.Validator == "" {
		return
	}
	e, err := capability.EngineNamed(m.Agent.Validator, plugged()...)
	if err != nil {
		l.failed(fmt.Errorf("%s: %w", l.name(m.Agent.Path), err))
		return
	}
	m.Capabilities = l.withEngine(m.Capabilities, e)
	for _, p := range m.Peers {
		p.Document = l.withEngine(p.Document, e)
	}
}

// withEngine returns d under an engine, made once for each pair. A nil d stays
// nil.
func (l *loader) withEngine(d *capability.Document, e capability.Engine) *capability.Document {
	if d == nil || e.Name() == (capability.Native{}).Name() {
		return d
	}
	key := engined{d, e.Name()}
	if out, ok := l.engines[key]; ok {
		return out
	}
	out, err := d.WithEngine(e)
	l.failed(err)
	l.engines[key] = out
	return out
}
