package nats_test

import (
	"testing"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/transport/nats"
)

// A callee whose connection was lost announces itself to those that follow it.
func TestCalleeIsBack(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	proxy := natstest.NewProxy(t, server.Addr())
	p := newPair(t, server.URL(), proxy.URL(), 10, nil)
	heard := make(chan envelope.Address, 16)
	peer := rpc.Peer{Address: calleeAddress, Transport: nats.Kind, Topic: "agents.callee.requests"}
	if err := p.client.Follow([]rpc.Peer{peer}, func(peer envelope.Address, revision string) {
		if revision != "" { // "" is the caller's own loss
			heard <- peer
		}
	}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		proxy.Sever()
		if got := wait(t, heard); got != calleeAddress {
			t.Errorf("heard of %s", got)
		}
	}
}
