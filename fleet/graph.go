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

// A Graph shows which agents may call which.
type Graph struct {
	Nodes []Node `json:"nodes"`
	Edges []Edge `json:"edges"`
}

// A Node is an agent.
type Node struct {
	// ID is the agent's id.
	ID string `json:"id"`
	// ClientOnly reports a member that offers no capabilities.
	ClientOnly bool `json:"clientOnly"`
	// Capabilities are names in declared order. The list is empty, not nil,
	// if none are known.
	Capabilities []string `json:"capabilities"`
	// External reports an agent that is no member of the fleet.
	External bool `json:"external"`
}

// An Edge leads from an agent to one that it may call.
type Edge struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Transport is the first that the peers file names.
	Transport capability.TransportKind `json:"transport"`
	// Capability is set if exactly one capability may be called.
	Capability string `json:"capability,omitempty"`
	// Capabilities are all that may be called. The list is empty if none are
	// known.
	Capabilities []string `json:"capabilities"`
}

// GraphOptions select what a graph shows. The zero value shows everything.
type GraphOptions struct {
	// Allowed, if not nil, decides whether one agent may call a capability of
	// another; package policy provides such functions. The capability is ""
	// for a callee whose capabilities are not known. An edge without an
	// allowed capability is left out.
	Allowed func(from, to envelope.Address, capability string) bool
}

// Graph has an edge for every peer in a member's peers file, other than the
// member itself: members share files, and so find themselves listed.
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
				// Only with an edge: a peer that no rule allows does not belong in
				// the picture.
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

// edge returns the edge from m to a peer. ok is false if no capability is
// allowed.
func edge(m *Member, p *Peer, opts GraphOptions) (e Edge, ok bool) {
	e = Edge{From: m.ID, To: p.Address.ID(), Capabilities: []string{}}
	if len(p.Transports) > 0 {
		e.Transport = p.Transports[0].Kind
	}
	allowed := opts.Allowed
	if allowed == nil {
		allowed = func(envelope.Address, envelope.Address, string) bool { return true }
	}
	// What the callee offers is unknown, so the rules decide about the agent as a
	// whole.
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

// colour returns the colour of a transport's edges, the same as in the
// reference system.
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

// names gives each node an identifier that needs no quoting in either
// notation.
func (g Graph) names() map[string]string {
	names := make(map[string]string, len(g.Nodes))
	for i, n := range g.Nodes {
		names[n.ID] = fmt.Sprintf("n%d", i)
	}
	return names
}

// label is the edge's capability if there is only one, or else its transport.
func (e Edge) label() string {
	if e.Capability != "" {
		return e.Capability
	}
	return string(e.Transport)
}

// mermaid writes Mermaid's notation. Nothing needs escaping: the grammar of
// ids and capability names allows letters, digits, '-', '_' and '.' only.
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

// dot writes Graphviz's notation. As in mermaid, nothing needs escaping.
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
