package external

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agentd/agentd/internal/mcpclient"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/schema"
)

// A Pinned is what pinning has found at one server.
type Pinned struct {
	Server         string `json:"server"`
	Implementation string `json:"implementation,omitempty"`
	// Tools are those that are pinned now.
	Tools []string `json:"tools"`
	// New, Gone and Changed are how they differ from those that were pinned before.
	New     []string              `json:"new,omitempty"`
	Gone    []string              `json:"gone,omitempty"`
	Changed []mcpclient.Deviation `json:"changed,omitempty"`
	// Unusable are tools that cannot be pinned, with the reason.
	Unusable map[string]string `json:"unusable,omitempty"`
}

// Same reports whether pinning has changed nothing.
func (p Pinned) Same() bool { return len(p.New)+len(p.Gone)+len(p.Changed) == 0 }

// Pin connects to each server of a configuration once, and to the declared ones that are in
// the lock because their tools serve capabilities, and returns the lock with what they serve.
// The lock of a server that is neither is left out.
func (r *Resolver) Pin(ctx registry.Context, raw json.RawMessage) (*Lock, []Pinned, error) {
	var conf config
	if err := json.Unmarshal(raw, &conf); err != nil {
		return nil, nil, err
	}
	names, err := r.names(&conf)
	if err != nil {
		return nil, nil, err
	}
	before, err := ReadLock(ctx.AgentDir)
	if errors.Is(err, errEdited) { // the one lock that pinning mends; others may say what this agentd does not know
		before, err = &Lock{}, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w (mend the file, or remove it to pin anew)", err)
	}
	for _, d := range r.declared {
		if _, imported := before.Servers[d.Name]; imported && !slices.Contains(names, d.Name) {
			names = append(names, d.Name)
		}
	}
	lock := &Lock{Version: lockVersion, Servers: map[string]LockedServer{}}
	var all []Pinned
	var errs []error
	for _, name := range names {
		o, err := r.options(ctx, name, conf.Servers[name])
		if err != nil {
			return nil, nil, err
		}
		listing, err := mcpclient.List(ctx, o)
		if err != nil {
			errs = append(errs, fmt.Errorf("the MCP server %s: %w", name, err))
			continue
		}
		p := Pinned{Server: name, Implementation: listing.Implementation, Tools: []string{}}
		locked := p.lock(ctx, listing)
		p.compare(before.Servers[name], locked)
		lock.Servers[name] = locked
		all = append(all, p)
	}
	return lock, all, errors.Join(errs...)
}

// lock makes the lock of a server. A tool that no call could be checked for is not pinned.
func (p *Pinned) lock(ctx context.Context, listing *mcpclient.Listing) LockedServer {
	locked := LockedServer{Implementation: listing.Implementation, Tools: []LockedTool{}}
	for _, c := range listing.Tools {
		digest, err := c.Digest()
		if err == nil {
			err = usable(ctx, c)
		}
		if err != nil {
			if p.Unusable == nil {
				p.Unusable = map[string]string{}
			}
			p.Unusable[c.Name] = err.Error()
			continue
		}
		locked.Tools = append(locked.Tools, LockedTool{c, digest})
		p.Tools = append(p.Tools, c.Name)
	}
	return locked
}

// usable reports why a tool cannot be used. Its schemas are a stranger's.
func usable(ctx context.Context, c mcpclient.Contract) error {
	full := schema.CompileOptions{Profile: schema.ProfileFull}
	for _, s := range []struct {
		what string
		src  json.RawMessage
	}{{"input", c.InputSchema}, {"output", c.OutputSchema}} {
		if s.src == nil {
			continue
		}
		if _, err := schema.CompileWithin(ctx, s.src, full, schema.CompileLimits{}); err != nil {
			return fmt.Errorf("its %s schema: %w", s.what, err)
		}
		var root struct {
			Type json.RawMessage `json:"type"`
		}
		if err := json.Unmarshal(s.src, &root); s.what == "input" && (err != nil || string(root.Type) != `"object"`) {
			return errors.New("its input schema is not of type object")
		}
	}
	return nil
}

// compare says how the lock of a server differs from the one before.
func (p *Pinned) compare(before, now LockedServer) {
	find := func(all []LockedTool, name string) (LockedTool, bool) {
		i := slices.IndexFunc(all, func(t LockedTool) bool { return t.Name == name })
		if i < 0 {
			return LockedTool{}, false
		}
		return all[i], true
	}
	for _, t := range now.Tools {
		was, ok := find(before.Tools, t.Name)
		if !ok {
			p.New = append(p.New, t.Name)
		} else if changes := mcpclient.Changes(was.Contract, t.Contract); len(changes) > 0 {
			p.Changed = append(p.Changed, mcpclient.Deviation{Tool: t.Name, Changes: changes})
		}
	}
	for _, t := range before.Tools {
		if _, ok := find(now.Tools, t.Name); !ok {
			p.Gone = append(p.Gone, t.Name)
		}
	}
	slices.SortFunc(p.Changed, func(a, b mcpclient.Deviation) int { return strings.Compare(a.Tool, b.Tool) })
}
