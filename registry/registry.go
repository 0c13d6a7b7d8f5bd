package registry

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/agentd/agentd/internal/spelling"
	"github.com/agentd/agentd/schema"
)

// toolsKey is the key of a capability's configuration that the registry keeps to
// itself.
const toolsKey = "tools"

// A Registry is the single place that knows which capabilities there are. It is safe
// for concurrent use.
type Registry struct {
	mu        sync.RWMutex
	resolvers map[string]entry
}

// entry is a resolver with what it declared when it was registered.
type entry struct {
	resolver Resolver
	tools    []Tool
	config   *schema.Schema // nil: takes no configuration
}

// New returns a registry without capabilities.
func New() *Registry { return &Registry{resolvers: map[string]entry{}} }

// Register makes a capability known. It refuses a key that is taken, and a resolver
// whose declarations are not as [Resolver] asks.
func (r *Registry) Register(resolver Resolver) error {
	key := resolver.Key()
	if !validName(key) {
		return fmt.Errorf("the key %q of a capability is not 1 to %d letters, digits, _ and -", key, maxName)
	}
	e := entry{resolver: resolver, tools: slices.Clone(resolver.Tools())}
	if err := checkTools(e.tools); err != nil {
		return fmt.Errorf("capability %s: %w", key, err)
	}
	if src := resolver.ConfigSchema(); src != nil {
		compiled, err := schema.Compile(src)
		if err != nil {
			return fmt.Errorf("capability %s: the schema of its configuration: %w", key, err)
		}
		if slices.ContainsFunc(compiled.Root().Properties(), func(p schema.Property) bool { return p.Name == toolsKey }) {
			return fmt.Errorf("capability %s: the schema of its configuration declares %q, which belongs to the registry", key, toolsKey)
		}
		e.config = compiled
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, taken := r.resolvers[key]; taken {
		return fmt.Errorf("capability %s is registered already", key)
	}
	r.resolvers[key] = e
	return nil
}

// checkTools checks what a resolver declares.
func checkTools(tools []Tool) error {
	seen := map[string]bool{}
	for _, t := range tools {
		switch {
		case !validName(t.Key):
			return fmt.Errorf("the key %q of a tool is not 1 to %d letters, digits, _ and -", t.Key, maxName)
		case seen[t.Key]:
			return fmt.Errorf("the tool %s is declared twice", t.Key)
		case t.Name == "" || t.Description == "":
			return fmt.Errorf("the tool %s needs a name and a description", t.Key)
		}
		seen[t.Key] = true
	}
	return nil
}

// maxName is the length of the longest name of a function that all model providers
// take.
const maxName = 64

// validName matches ^[A-Za-z0-9_-]{1,64}$.
func validName(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return s != "" && len(s) <= maxName
}

// A Descriptor is what is known of a capability without starting it.
type Descriptor struct {
	Key   string `json:"key"`
	Tools []Tool `json:"tools"`
	// ConfigSchema leaves out tools, which every capability takes.
	ConfigSchema json.RawMessage `json:"configSchema,omitempty"`
	// PerAgent says that an agent may have further tools, see [AgentResolver].
	PerAgent bool `json:"perAgent,omitempty"`
}

// KnownCapabilities lists the capabilities by their keys. It starts nothing.
func (r *Registry) KnownCapabilities() []Descriptor {
	r.mu.RLock()
	defer r.mu.RUnlock()
	known := make([]Descriptor, 0, len(r.resolvers))
	for _, key := range slices.Sorted(maps.Keys(r.resolvers)) {
		e := r.resolvers[key]
		_, perAgent := e.resolver.(AgentResolver)
		// Never nil, so that it shows as an empty list.
		d := Descriptor{Key: key, Tools: append([]Tool{}, e.tools...), PerAgent: perAgent}
		if e.config != nil {
			d.ConfigSchema = e.config.Source()
		}
		known = append(known, d)
	}
	return known
}

// find returns the resolver of a capability, or words about those that there are.
func (r *Registry) find(key string) (e entry, ok bool, hint string) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if e, ok = r.resolvers[key]; ok {
		return e, true, ""
	}
	return entry{}, false, "known: " + spelling.Among(key, slices.Sorted(maps.Keys(r.resolvers)))
}
