package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agentd/agentd/internal/spelling"
	"github.com/agentd/agentd/internal/strictyaml"
)

// declared is an environment as the file declares it, before inheritance.
type declared struct {
	Environment
	inherit strictyaml.Value
}

// decodeEnvironments reads the environments and applies inheritance. If the
// file declares none, the result is the default one.
func decodeEnvironments(v strictyaml.Value, p paths) []*Environment {
	entries := v.Entries()
	if len(entries) == 0 {
		return []*Environment{{Name: DefaultEnvironment, Chain: []string{DefaultEnvironment}}}
	}
	all := make(map[string]*declared, len(entries))
	for _, e := range entries {
		// All of them before any is resolved: an environment may inherit from one
		// further down.
		all[e.Name] = decodeEnvironment(e, p)
	}
	r := resolver{declared: all, done: make(map[string]*Environment)}
	out := make([]*Environment, 0, len(entries))
	for _, e := range entries {
		out = append(out, r.resolve(e.Name))
	}
	return out
}

// decodeEnvironment reads one environment without applying inheritance.
func decodeEnvironment(e strictyaml.Entry, p paths) *declared {
	o := e.Value.Object()
	d := &declared{inherit: o.Get("inherit"), Environment: Environment{
		Name:      e.Name,
		PeersRef:  p.inside(o.Get("peersRef"), p.root),
		Overrides: make(map[string]Override),
		Position:  e.Value.Position(),
	}}
	d.decodeRefs(o, p)
	for _, member := range o.Get("overrides").Entries() {
		m := member.Value.Object()
		d.Overrides[member.Name] = Override{
			EnvFiles: d.decodeEnvFiles(m.Get(envFilesKey), member.Name, p),
		}
		refuse(member.Value, map[string]string{"secretScopes": "inheritEnv of a skill names the variables that it gets"}) //nolint:gosec // advice, and no secret
		m.PassOver("secretScopes")
		m.Done()
	}
	refuse(e.Value, map[string]string{"tenantsRef": "agentd reads no file of tenants; tenants in agent.yaml lists those that an agent serves"})
	o.PassOver("tenantsRef")
	o.Done()
	return d
}

// resolver applies inheritance, once to each environment.
type resolver struct {
	declared map[string]*declared
	done     map[string]*Environment
	open     []string // the chain of inheritance being followed
}

// resolve returns a declared environment with everything that it inherits.
func (r *resolver) resolve(name string) *Environment {
	if env, ok := r.done[name]; ok {
		return env
	}
	d := r.declared[name]
	env := d.Environment
	env.Chain = []string{name}
	if parent := r.parent(d); parent != nil {
		env = inherit(parent, d)
	}
	r.done[name] = &env
	return &env
}

// parent returns the resolved environment that d inherits from; nil if there
// is none, or if it is a fault. It keeps the open chain on a stack, because a
// cycle would recurse for ever.
func (r *resolver) parent(d *declared) *Environment {
	name := d.inherit.Text()
	if name == "" {
		return nil
	}
	r.open = append(r.open, d.Name)
	defer func() { r.open = r.open[:len(r.open)-1] }()
	if i := slices.Index(r.open, name); i >= 0 {
		chain := append(slices.Clone(r.open[i:]), name)
		d.inherit.Fault("circular inherit chain: "+strings.Join(chain, " → "), "")
		return nil
	}
	if _, ok := r.declared[name]; !ok {
		known := slices.Sorted(maps.Keys(r.declared))
		d.inherit.Fault(fmt.Sprintf("environment %q inherits from %q, which is not declared", d.Name, name), spelling.DidYouMean(name, known))
		return nil
	}
	return r.resolve(name)
}

// inherit merges d over its parent: a field that d sets replaces the
// inherited one, and overrides are replaced member by member.
func inherit(parent *Environment, d *declared) Environment {
	env := d.Environment
	env.Chain = append(slices.Clone(parent.Chain), d.Name)
	env.refs = inheritRefs(parent, d)
	for _, f := range []struct{ own, inherited *string }{
		{&env.PeersRef, &parent.PeersRef},
		{&env.SecretsRef, &parent.SecretsRef}, {&env.ChannelsRef, &parent.ChannelsRef},
	} {
		if *f.own == "" {
			*f.own = *f.inherited
		}
	}
	// An empty list is not nil, and so overrides; see decodePaths.
	if env.EnvFiles == nil {
		env.EnvFiles = parent.EnvFiles
	}
	// A clone: children of the same parent must not see each other's overrides.
	env.Overrides = maps.Clone(parent.Overrides)
	maps.Copy(env.Overrides, d.Overrides)
	return env
}
