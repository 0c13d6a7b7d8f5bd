package fleet

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
)

// A Graph is who may call whom.
type Graph struct {
	Nodes []Node `json:"nodes"`
	Edges []Edge `json:"edges"`
}

// A Node is an agent.
type Node struct {
	// ID is the agent's id.
	ID string `json:"id"`
	// ClientOnly reports that the agent is a member and offers nothing.
	ClientOnly bool `json:"clientOnly"`
	// Capabilities are names, in declared order; empty if none are known.
	Capabilities []string `json:"capabilities"`
	// External reports that the agent is no member.
	External bool `json:"external"`
}

// An Edge says that one agent may call another.
type Edge struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Transport is the first that the peers file names.
	Transport capability.TransportKind `json:"transport"`
	// Capability is the one that may be called, if it is only one.
	Capability string `json:"capability,omitempty"`
	// Capabilities are all that may be called; empty if none are known.
	Capabilities []string `json:"capabilities"`
}

// GraphOptions narrow a graph.
type GraphOptions struct {
	// Allowed, if not nil, decides whether one agent may call a capability of
	// another: package policy knows. The capability is "" where none is known.
	// Edges on which nothing is allowed are left out.
	Allowed func(from, to envelope.Address, capability string) bool
}

// Graph draws an edge for every peer that a member's peers file declares,
// other than the member itself.
func (f *Fleet) Graph(opts GraphOptions) Graph {
	g := Graph{Nodes: []Node{}, Edges: []Edge{}}
	for _, m := range f.Members {
		n := Node{ID: m.ID, ClientOnly: m.ClientOnly(), Capabilities: []string{}}
		if !m.ClientOnly() {
			n.Capabilities = m.Capabilities.Names()
		}
		g.Nodes = append(g.Nodes, n)
	}
	for _, m := range f.Members {
		for _, p := range m.Peers {
			if p.Address == m.Address {
				continue
			}
			if e, ok := edge(m, p, opts); ok {
				g.Edges = append(g.Edges, e)
				g.addExternal(p)
			}
		}
	}
	return g
}

// addExternal adds a node for a peer outside the fleet, once.
func (g *Graph) addExternal(p *Peer) {
	id := p.Address.ID()
	if p.InFleet || slices.ContainsFunc(g.Nodes, func(n Node) bool { return n.ID == id }) {
		return
	}
	n := Node{ID: id, External: true, Capabilities: []string{}}
	if p.Document != nil {
		n.Capabilities = p.Document.Names()
	}
	g.Nodes = append(g.Nodes, n)
}

// edge is the edge to a peer; ok is false if nothing on it is allowed.
func edge(m *Member, p *Peer, opts GraphOptions) (e Edge, ok bool) {
	e = Edge{From: m.ID, To: p.Address.ID(), Capabilities: []string{}}
	if len(p.Transports) > 0 {
		e.Transport = p.Transports[0].Kind
	}
	allowed := opts.Allowed
	if allowed == nil {
		allowed = func(envelope.Address, envelope.Address, string) bool { return true }
	}
	if p.Document == nil {
		return e, allowed(m.Address, p.Address, "")
	}
	for _, name := range p.Document.Names() {
		if allowed(m.Address, p.Address, name) {
			e.Capabilities = append(e.Capabilities, name)
		}
	}
	if len(e.Capabilities) == 1 {
		e.Capability = e.Capabilities[0]
	}
	return e, len(e.Capabilities) > 0
}

// A GraphFormat is a notation for graphs.
type GraphFormat string

// The notations.
const (
	FormatMermaid GraphFormat = "mermaid"
	FormatDOT     GraphFormat = "dot"
	FormatJSON    GraphFormat = "json"
)

// Write writes the graph in a notation.
func (g Graph) Write(w io.Writer, format GraphFormat) error {
	var text string
	switch format {
	case FormatMermaid:
		text = g.mermaid()
	case FormatDOT:
		text = g.dot()
	case FormatJSON:
		out, err := json.MarshalIndent(g, "", "  ")
		if err != nil {
			return fmt.Errorf("fleet graph: %w", err)
		}
		text = string(out) + "\n"
	default:
		return fmt.Errorf("fleet graph: no format %q: choose mermaid, dot or json", format)
	}
	_, err := io.WriteString(w, text)
	return err
}

// colour is a transport's colour, the one that the reference system draws.
func colour(k capability.TransportKind) string {
	switch k {
	case capability.Memory:
		return "#3b82f6"
	case capability.Kafka:
		return "#ef4444"
	case capability.NATS:
		return "#10b981"
	case capability.SQS:
		return "#f59e0b"
	case capability.AMQP:
		return "#8b5cf6"
	case capability.MQTT:
		return "#ec4899"
	}
	return "#6b7280"
}

// names gives every node a name that needs no quoting.
func (g Graph) names() map[string]string {
	names := make(map[string]string, len(g.Nodes))
	for i, n := range g.Nodes {
		names[n.ID] = fmt.Sprintf("n%d", i)
	}
	return names
}

// label says most about an edge in one word.
func (e Edge) label() string {
	if e.Capability != "" {
		return e.Capability
	}
	return string(e.Transport)
}

// mermaid needs no escapes: ids and names are letters, digits, '-', '_', '.'.
func (g Graph) mermaid() string {
	var b strings.Builder
	names := g.names()
	b.WriteString("graph LR\n")
	for _, n := range g.Nodes {
		left, right := `["`, `"]`
		switch {
		case n.External:
			left, right = `(["`, `"])`
		case n.ClientOnly:
			left, right = `("`, `")`
		}
		text := strings.Join(append([]string{n.ID}, n.Capabilities...), "<br/>")
		fmt.Fprintf(&b, "  %s%s%s%s\n", names[n.ID], left, text, right)
	}
	for _, e := range g.Edges {
		fmt.Fprintf(&b, "  %s -->|%s| %s\n", names[e.From], e.label(), names[e.To])
	}
	for i, e := range g.Edges {
		fmt.Fprintf(&b, "  linkStyle %d stroke:%s\n", i, colour(e.Transport))
	}
	return b.String()
}

// dot needs no escapes either.
func (g Graph) dot() string {
	var b strings.Builder
	names := g.names()
	b.WriteString("digraph fleet {\n  rankdir=LR;\n  node [shape=box];\n")
	for _, n := range g.Nodes {
		style := ""
		switch {
		case n.External:
			style = ", style=dashed"
		case n.ClientOnly:
			style = ", style=rounded"
		}
		text := strings.Join(append([]string{n.ID}, n.Capabilities...), `\n`)
		fmt.Fprintf(&b, "  %s [label=\"%s\"%s];\n", names[n.ID], text, style)
	}
	for _, e := range g.Edges {
		fmt.Fprintf(&b, "  %s -> %s [label=\"%s\", color=\"%s\"];\n", names[e.From], names[e.To], e.label(), colour(e.Transport))
	}
	b.WriteString("}\n")
	return b.String()
}
