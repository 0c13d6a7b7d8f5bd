package fleet

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
)

// offering is a document with these capability names, for inspection.
func offering(t *rapid.T, id string, names []string) *capability.Document {
	if len(names) == 0 {
		return nil
	}
	doc, err := capability.Parse("c.yaml", []byte("{version: 1, agent: agent://"+id+", transports: [{kind: memory, topics: {requests: r}}], capabilities: [{name: "+
		strings.Join(names, "}, {name: ")+"}]}"), capability.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// drawnFleet is a fleet of random members that call each other and a few
// outsiders, and themselves now and then.
func drawnFleet(t *rapid.T) *Fleet {
	f := &Fleet{}
	documents := map[string]*capability.Document{}
	kinds := []capability.TransportKind{capability.Memory, capability.NATS, capability.Kafka, capability.SQS, capability.AMQP, capability.MQTT}
	for i := range rapid.IntRange(0, 5).Draw(t, "members") {
		id := fmt.Sprintf("m%d", i)
		names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3, rapid.ID[string]).Draw(t, "names")
		documents[id] = offering(t, id, names)
		f.Members = append(f.Members, &Member{ID: id, Address: envelope.AddressOf(id), Capabilities: documents[id]})
	}
	for _, m := range f.Members {
		for _, id := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"m0", "m1", "m2", "x.1", "x.2"}), 0, 5, rapid.ID[string]).Draw(t, "peers") {
			_, in := documents[id]
			p := &Peer{Address: envelope.AddressOf(id), InFleet: in, Document: documents[id]}
			if id == "x.1" {
				p.Document = offering(t, id, []string{"far"})
			}
			for range rapid.IntRange(0, 2).Draw(t, "transports") {
				p.Transports = append(p.Transports, capability.TransportSpec{Kind: rapid.SampledFrom(kinds).Draw(t, "kind")})
			}
			m.Peers = append(m.Peers, p)
		}
	}
	return f
}

// A graph has each agent once and each allowed pair once, and offers on an edge
// what the callee offers and is allowed.
func TestGraphsAreConsistent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawnFleet(t)
		forbidden := rapid.SampledFrom([]string{"a", "b", "far", "", "none"}).Draw(t, "forbidden")
		g := f.Graph(GraphOptions{Allowed: func(_, _ envelope.Address, capability string) bool { return capability != forbidden }})
		nodes := map[string]Node{}
		for i, n := range g.Nodes {
			if _, twice := nodes[n.ID]; twice {
				t.Fatalf("%s stands twice in %+v", n.ID, g.Nodes)
			}
			nodes[n.ID] = n
			if n.External != (i >= len(f.Members)) || n.Capabilities == nil {
				t.Fatalf("node %d is %+v", i, n)
			}
		}
		want := 0
		for _, m := range f.Members {
			for _, p := range m.Peers {
				offers := []string{""}
				if p.Document != nil {
					offers = p.Document.Names()
				}
				if p.Address != m.Address && slices.ContainsFunc(offers, func(name string) bool { return name != forbidden }) {
					want++
				}
			}
		}
		if len(g.Edges) != want {
			t.Fatalf("%d edges, want %d: %+v", len(g.Edges), want, g.Edges)
		}
		for _, e := range g.Edges {
			to, ok := nodes[e.To]
			if _, from := nodes[e.From]; !from || !ok || e.From == e.To {
				t.Fatalf("the edge %+v has no ends", e)
			}
			allowed := slices.DeleteFunc(slices.Clone(to.Capabilities), func(name string) bool { return name == forbidden })
			if !slices.Equal(e.Capabilities, allowed) || (e.Capability != "") != (len(allowed) == 1) {
				t.Fatalf("the edge %+v offers other than %v", e, allowed)
			}
		}
		checkNotations(t, g)
	})
}

// checkNotations counts what each notation draws.
func checkNotations(t *rapid.T, g Graph) {
	for format, marks := range map[GraphFormat][2]string{FormatMermaid: {"[", "-->"}, FormatDOT: {" [label=", " -> "}} {
		var b strings.Builder
		if err := g.Write(&b, format); err != nil {
			t.Fatal(err)
		}
		nodes, edges := 0, 0
		for line := range strings.Lines(b.String()) {
			switch {
			case strings.Contains(line, marks[1]):
				edges++
			case strings.Contains(line, marks[0]) && strings.HasPrefix(line, "  n") && !strings.Contains(line, "node ["), strings.HasPrefix(line, "  n") && strings.Contains(line, `("`):
				nodes++
			}
		}
		if nodes != len(g.Nodes) || edges != len(g.Edges) {
			t.Fatalf("%s draws %d nodes and %d edges of %d and %d:\n%s", format, nodes, edges, len(g.Nodes), len(g.Edges), &b)
		}
	}
}

// Each transport has a colour of its own.
func TestColours(t *testing.T) {
	seen := map[string]capability.TransportKind{}
	for _, k := range []capability.TransportKind{capability.Memory, capability.NATS, capability.Kafka, capability.SQS, capability.AMQP, capability.MQTT, ""} {
		c := colour(k)
		if other, dup := seen[c]; dup || len(c) != 7 || c[0] != '#' {
			t.Errorf("%q is %s, like %q", k, c, other)
		}
		seen[c] = k
	}
}

var errFull = errors.New("no space left")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

// Whatever is written for people says when it could not be.
func TestWritersReportErrors(t *testing.T) {
	f := &Fleet{}
	for name, write := range map[string]func(io.Writer) error{
		"mermaid":   func(w io.Writer) error { return f.Graph(GraphOptions{}).Write(w, FormatMermaid) },
		"json":      func(w io.Writer) error { return f.Graph(GraphOptions{}).Write(w, FormatJSON) },
		"list":      f.List().WriteText,
		"catalogue": (Catalogue{ClientOnly: []string{"agent://a"}}).WriteText,
		"findings":  f.Lint().WriteText,
	} {
		if err := write(fullDisk{}); !errors.Is(err, errFull) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What stands behind an offer's name in text.
func TestOfferDetails(t *testing.T) {
	for _, tt := range []struct {
		offer ListedCapability
		want  string
	}{
		{ListedCapability{Input: "d"}, ""},
		{ListedCapability{Output: "d"}, ""},
		{ListedCapability{}, " (untyped)"},
		{ListedCapability{Input: "d", TimeoutMs: 1}, " (timeout=1ms)"},
		{ListedCapability{Input: "d", Idempotent: true}, " (idempotent)"},
		{ListedCapability{TimeoutMs: 20, Idempotent: true}, " (untyped, timeout=20ms, idempotent)"},
		{ListedCapability{Input: "d", Description: " Two\n\twords. "}, ": Two words."},
		{ListedCapability{Description: "x"}, " (untyped): x"},
	} {
		if got := tt.offer.details(); got != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.offer, got, tt.want)
		}
	}
}
