package drift

import (
	"context"
	"testing"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/caller"
)

// BenchmarkCheck is what the gate costs a call whose contract was proven before.
func BenchmarkCheck(b *testing.B) {
	doc, err := capability.Parse("c.yaml", []byte("version: 1\nagent: agent://callee\ntransports: [{kind: memory, topics: {requests: agents.callee.requests}}]\ncapabilities: [{name: f, inputSchema: {type: object}}]\n"), capability.LoadOptions{ValidateSchemas: true})
	if err != nil {
		b.Fatal(err)
	}
	c, _ := doc.Lookup("f")
	p := caller.Probe{Peer: rpc.Peer{Address: "agent://callee", Transport: "memory", Topic: "agents.callee.requests", Contract: doc}, Capability: c}
	g := NewGate(Options{})
	s := g.peer(&p.Peer)
	s.generation, s.outcome = 1, answered
	t := s.tool("f")
	t.rekey(keyOf(p, Enforce))
	t.decide(decision{clearance: caller.Clearance{Digest: c.Digest}}, s, &g.opts, time.Now())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Check(context.Background(), p); err != nil {
			b.Fatal(err)
		}
	}
}
