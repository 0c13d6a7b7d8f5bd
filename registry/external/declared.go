package external

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/agentd/agentd/internal/mcpclient"
	"github.com/agentd/agentd/internal/spelling"
	"github.com/agentd/agentd/registry"
)

// A Declared is a server that the agent's file declares for all of its uses, under mcpServers.
// The configuration of the capability names it, and says how it is used.
type Declared struct {
	Name string
	// Refuse is what becomes of a tool whose description alone has changed, unless the
	// configuration says otherwise.
	Refuse bool
	// Options are those of a connection, without what is pinned. Nil is for who only checks a
	// configuration.
	Options func(ctx registry.Context) (mcpclient.Options, error)
	// Key names all that Options depends on.
	Key string
}

// Declare has configurations name these servers.
func (r *Resolver) Declare(servers ...Declared) *Resolver {
	r.declared = servers
	return r
}

func (r *Resolver) find(name string) (Declared, bool) {
	i := slices.IndexFunc(r.declared, func(d Declared) bool { return d.Name == name })
	if i < 0 {
		return Declared{}, false
	}
	return r.declared[i], true
}

// servers are by name. A list of names is short for entries that say nothing.
type servers map[string]server

// UnmarshalJSON implements [json.Unmarshaler].
func (s *servers) UnmarshalJSON(data []byte) error {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		return json.Unmarshal(data, (*map[string]server)(s))
	}
	var names []string
	if err := json.Unmarshal(data, &names); err != nil {
		return err
	}
	*s = servers{}
	for _, name := range names {
		(*s)[name] = server{}
	}
	return nil
}

// reference reports whether an entry names a declared server, rather than to declare one.
func (s server) reference() bool { return len(s.Command) == 0 && s.URL == "" }

// Inline are the names of the servers that a configuration declares itself, in order.
func Inline(raw json.RawMessage) (names []string) {
	var conf config
	if json.Unmarshal(raw, &conf) != nil {
		return nil // a fault of its own
	}
	for _, name := range slices.Sorted(maps.Keys(conf.Servers)) {
		if !conf.Servers[name].reference() {
			names = append(names, name)
		}
	}
	return names
}

// checkReference reports an entry that names no server, or says of one what its declaration
// says.
func (r *Resolver) checkReference(name string, s server) error {
	if _, ok := r.find(name); !ok {
		var names []string
		for _, d := range r.declared {
			names = append(names, d.Name)
		}
		return fault(pointer(name), fmt.Sprintf("there is no MCP server %q under mcpServers", name), spelling.DidYouMean(name, names))
	}
	connection := s
	connection.Tools, connection.Descriptions, connection.TimeoutMs = nil, "", 0
	if !reflect.DeepEqual(connection, server{}) {
		return fault(pointer(name), "how the server is reached is declared under mcpServers", "keep tools, descriptions and timeoutMs here, and move the rest there")
	}
	return nil
}

// declaredOptions are those of a server that is declared elsewhere.
func (r *Resolver) declaredOptions(ctx registry.Context, name string, s server) (mcpclient.Options, error) {
	d, _ := r.find(name) // read has checked that there is one
	o, err := d.Options(ctx)
	if err != nil {
		return o, fault(pointer(name), err.Error(), "")
	}
	o.AcceptDescriptions = s.Descriptions == "report" || s.Descriptions == "" && !d.Refuse
	o.Limits.Timeout = time.Duration(s.TimeoutMs) * time.Millisecond
	return o, nil
}
