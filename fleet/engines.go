package fleet

import (
	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/strictyaml"
	"github.com/agentd/agentd/schema"
)

// capabilityOptions returns the options for the capabilities file at path,
// which must declare agent.
func (l *loader) capabilityOptions(path string, agent envelope.Address) capability.LoadOptions {
	return capability.LoadOptions{
		ValidateSchemas: !l.opts.InspectOnly, Agent: agent, Name: l.name(path), SecondOpinion: l.opts.SecondOpinion,
		Schemas: l.schemas,
	}
}

// engined is a document under an engine of that name with limits.
type engined struct {
	document *capability.Document
	engine   string
	limits   schema.Limits
}

// selectEngine gives a member the validator that its agent.yaml names, for its
// own contracts and for its view of its peers'. Two members may look at one
// peer through different validators. So are the bounds on a payload.
func (l *loader) selectEngine(m *Member) {
	if m.Agent == nil || l.opts.InspectOnly {
		return // for inspection nothing is validated
	}
	e, err := capability.EngineNamed(m.Agent.Validator, l.opts.Engines...)
	if err != nil {
		l.failed(&strictyaml.Error{Faults: []Fault{m.Agent.validatorAt.Fault(err.Error(), "use native, or a program that has it")}})
		return
	}
	limits := schema.Limits{MaxViolations: m.Agent.Limits.MaxViolations, MaxSteps: m.Agent.Limits.MaxValidationSteps,
		RedactNames: m.Agent.Limits.RedactNames}
	m.Capabilities = l.withEngine(m.Capabilities, e, limits)
	if !byDefault(e, limits) {
		l.peersWithEngine(m.PeersFile, e, limits).give(m)
	}
}

// view is a peers file as members see it that use an engine of that name with limits.
type view struct {
	path   string
	engine string
	limits schema.Limits
}

// peersWithEngine returns the peers of a file with their contracts under an engine with
// limits, made once for each triple.
func (l *loader) peersWithEngine(path string, e capability.Engine, limits schema.Limits) peerList {
	key := view{path, e.Name(), limits}
	if out, ok := l.views[key]; ok {
		return out
	}
	in := l.peers[path]
	out := peerList{make([]*Peer, len(in.all)), make(map[envelope.Address]*Peer, len(in.all))}
	for i, p := range in.all {
		peer := *p
		peer.Document = l.withEngine(p.Document, e, limits)
		out.all[i], out.byAddress[p.Address] = &peer, &peer
	}
	l.views[key] = out
	return out
}

func byDefault(e capability.Engine, limits schema.Limits) bool {
	return limits == defaultLimits() && e.Name() == (capability.Native{}).Name()
}

// defaultLimits are those that documents are loaded with.
func defaultLimits() schema.Limits {
	return schema.Limits{MaxViolations: schema.DefaultMaxViolations, MaxSteps: schema.DefaultMaxSteps}
}

// withEngine returns d under an engine with limits, made once for each triple. A nil d
// stays nil.
func (l *loader) withEngine(d *capability.Document, e capability.Engine, limits schema.Limits) *capability.Document {
	if d == nil || byDefault(e, limits) {
		return d
	}
	if limits != defaultLimits() {
		e = capability.Limited(e, limits)
	}
	key := engined{d, e.Name(), limits}
	// Members share the documents of their peers, and compiling a schema again is
	// the slow part of a load.
	if out, ok := l.now.engines[key]; ok {
		return out
	}
	out, ok := l.before.engines[key]
	if !ok {
		var err error
		out, err = d.WithEngine(e)
		l.failed(err)
	}
	l.now.engines[key] = out
	return out
}
