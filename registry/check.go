package registry

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/internal/spelling"
	"github.com/agentd/agentd/internal/strictyaml"
	"github.com/agentd/agentd/schema"
)

// A plan is a capability that has passed every check that starts nothing.
type plan struct {
	Capability
	resolver Resolver
	config   Config
	// listed says that the agent names its tools, rather than to take what there is.
	listed bool
	// skipped is why the resolver has nothing to plan for, or "".
	skipped string
}

// faults collects what is wrong, as the error of a load.
type faults []Fault

func (f *faults) add(at Position, message, hint string) { *f = append(*f, at.Fault(message, hint)) }

// err is a *LoadError, or nil.
func (f faults) err() error {
	if len(f) == 0 {
		return nil
	}
	return strictyaml.Join(&LoadError{Faults: f}) // sorts them by place
}

// plan checks the capabilities of an agent, and reports all faults at once.
func (r *Registry) plan(ctx Context, caps []Capability) ([]plan, error) {
	var bad faults
	var plans []plan
	seen := map[string]bool{}
	for _, c := range caps {
		e, ok, hint := r.find(c.Key)
		switch {
		case !ok:
			bad.add(c.Position, fmt.Sprintf("unknown capability %q", c.Key), hint)
			continue
		case seen[c.Key]:
			bad.add(c.Position, fmt.Sprintf("the capability %q is listed twice", c.Key), "keep one of them")
			continue
		}
		seen[c.Key] = true
		if p, ok := check(ctx, c, e, &bad); ok {
			plans = append(plans, p)
		}
	}
	for i := range plans {
		checkNames(plans[:i], plans[i], &bad)
	}
	return plans, bad.err()
}

// checkNames refuses a tool whose name another capability has: whoever calls it could
// not say which of the two it means.
func checkNames(before []plan, p plan, bad *faults) {
	for _, tool := range p.config.Tools {
		for _, other := range before {
			if slices.Contains(other.config.Tools, tool) {
				bad.add(p.At(""), fmt.Sprintf("the capabilities %q and %q both have a tool called %q", other.Key, p.Key, tool),
					fmt.Sprintf("list the tools of one of them, without %s, under its key tools", tool))
			}
		}
	}
}

// check judges one capability: its configuration, then its list of tools.
func check(ctx Context, c Capability, e entry, bad *faults) (p plan, ok bool) {
	before := len(*bad)
	listed, config, err := split(c.Config)
	if err != nil {
		bad.add(c.At(""), "its configuration is not a JSON object: "+err.Error(), "")
		return p, false
	}
	checkConfig(c, e.config, config, bad)
	if len(*bad) > before {
		return p, false // the tools may depend on it
	}
	p = plan{Capability: c, resolver: e.resolver, config: Config{JSON: config}, listed: listed != nil}
	declared := e.tools
	if ar, ok := e.resolver.(AgentResolver); ok {
		tools, err := ar.AgentTools(ctx, slices.Clone(config))
		if why, ok := skippedFor(err); ok {
			p.skipped = why
			return p, true
		}
		if err == nil {
			err = checkTools(tools)
		}
		if err != nil {
			addResolverFault(c, err, bad)
			return p, false
		}
		declared = tools
	}
	p.config.Tools = checkAllowlist(c, listed, declared, bad)
	return p, len(*bad) == before
}

// split takes the key tools out of a configuration. tools is nil where it is absent.
func split(config json.RawMessage) (tools, rest json.RawMessage, err error) {
	if config == nil {
		return nil, json.RawMessage("{}"), nil
	}
	if err := ijson.Check(config, maxDepth); err != nil {
		return nil, nil, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(config, &members); err != nil || members == nil {
		return nil, nil, errors.New("it is another value")
	}
	tools, ok := members[toolsKey]
	if !ok {
		return nil, bytes.Clone(config), nil
	}
	delete(members, toolsKey)
	rest, err = json.Marshal(members)
	return tools, rest, err
}

// maxDepth bounds the nesting of a configuration.
const maxDepth = 128

// checkAllowlist resolves the key tools against the tools that there are.
func checkAllowlist(c Capability, listed json.RawMessage, declared []Tool, bad *faults) []string {
	known := make([]string, len(declared))
	for i, t := range declared {
		known[i] = t.Key
	}
	if listed == nil {
		return known
	}
	var tools []*string
	err := json.Unmarshal(listed, &tools)
	switch {
	case err != nil || tools == nil || slices.Contains(tools, nil):
		bad.add(c.At("/tools"), "tools is a list of the names of tools", "leave the key out to have all tools")
		return nil
	case len(tools) == 0:
		bad.add(c.At("/tools"), "tools lists no tool", fmt.Sprintf("leave the key out to have all tools, or take %s out of capabilities to have none", c.Key))
		return nil
	}
	var allowed []string
	for i, t := range tools {
		at := c.At("/tools/" + strconv.Itoa(i))
		switch {
		case strings.ContainsAny(*t, "*?["):
			bad.add(at, fmt.Sprintf("tools takes no wildcards such as %q", *t), "list each tool, or leave the key out to have all tools")
		case !slices.Contains(known, *t):
			bad.add(at, fmt.Sprintf("the capability %q has no tool %q", c.Key, *t), "its tools: "+spelling.Among(*t, known))
		case slices.Contains(allowed, *t):
			bad.add(at, fmt.Sprintf("the tool %q is listed twice", *t), "keep one of them")
		default:
			allowed = append(allowed, *t)
		}
	}
	// The order of the declaration, so that the order of a list means nothing.
	slices.SortFunc(allowed, func(a, b string) int { return cmp.Compare(slices.Index(known, a), slices.Index(known, b)) })
	return allowed
}

// checkConfig holds a configuration, without tools, against the resolver's schema.
func checkConfig(c Capability, s *schema.Schema, config json.RawMessage, bad *faults) {
	if s == nil {
		var members map[string]json.RawMessage
		_ = json.Unmarshal(config, &members) // split has seen that it is an object
		for _, key := range slices.Sorted(maps.Keys(members)) {
			bad.add(c.At(appendToken("", key)), fmt.Sprintf("unknown key %q: the capability %q takes no configuration but tools", key, c.Key), spelling.DidYouMean(key, []string{toolsKey}))
		}
		return
	}
	for _, v := range s.Validate(config) {
		hint := ""
		if v.Keyword == schema.KeywordAdditionalProperties {
			hint = nearestKey(s, v.Path)
		}
		bad.add(c.At(v.Path), v.Message, hint)
	}
}

// nearestKey is a hint about a surplus key: what its neighbours are called.
func nearestKey(s *schema.Schema, path string) string {
	parent, name := path[:strings.LastIndexByte(path, '/')], path[strings.LastIndexByte(path, '/')+1:]
	node := s.Root().Resolve()
	for token := range strings.SplitSeq(strings.TrimPrefix(parent, "/"), "/") {
		if token == "" {
			continue
		}
		next, ok := child(node, untoken(token))
		if !ok {
			return ""
		}
		node = next.Resolve()
	}
	var known []string
	for _, p := range node.Properties() {
		known = append(known, p.Name)
	}
	if parent == "" {
		known = append(known, toolsKey)
	}
	return "known keys: " + spelling.Among(untoken(name), known)
}

// child is the schema that judges one member or element.
func child(n schema.Node, name string) (schema.Node, bool) {
	for _, p := range n.Properties() {
		if p.Name == name {
			return p.Schema, true
		}
	}
	// A schema may judge both lists and mappings.
	if _, err := strconv.ParseUint(name, 10, 31); err == nil {
		if items, ok := n.Items(); ok {
			return items, true
		}
	}
	return n.Additional()
}

func untoken(s string) string { return strings.NewReplacer("~1", "/", "~0", "~").Replace(s) }

func appendToken(pointer, name string) string {
	return pointer + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// addResolverFault records the error of a resolver, at its place where it names one.
func addResolverFault(c Capability, err error, bad *faults) {
	var ce *ConfigError
	if errors.As(err, &ce) {
		bad.add(c.At(ce.Pointer), ce.Message, ce.Hint)
		return
	}
	bad.add(c.At(""), fmt.Sprintf("the capability %q cannot be provided: %v", c.Key, err), "")
}
