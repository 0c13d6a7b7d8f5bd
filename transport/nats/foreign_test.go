package nats_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats"
)

// nodeModules is the folder whose node_modules has @nats-io/transport-node: that of
// $AGENTD_NODE_MODULES, which names the node_modules itself. Without it or without
// Node the test is skipped.
func nodeModules(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("SKIPPED: the wire is not tested against a foreign peer, since Node is not installed")
	}
	dir := filepath.Dir(os.Getenv("AGENTD_NODE_MODULES"))
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "@nats-io", "transport-node")); err != nil {
		t.Skip("SKIPPED: the wire is not tested against a foreign peer; run `npm i @nats-io/transport-node` in a folder and set AGENTD_NODE_MODULES to its node_modules")
	}
	return dir
}

// A nodePeer is a running testdata/peer.mjs.
type nodePeer struct {
	t     *testing.T
	lines chan string
}

func startNodePeer(t *testing.T, args ...string) *nodePeer {
	t.Helper()
	dir := nodeModules(t)
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "node", append([]string{"testdata/peer.mjs"}, args...)...)
	cmd.Env = append(os.Environ(), "AGENTD_NODE_MODULES="+dir)
	var failure strings.Builder
	cmd.Stderr = &failure
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &nodePeer{t: t, lines: make(chan string, 64)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(p.lines)
		for scan := bufio.NewScanner(stdout); scan.Scan(); {
			p.lines <- scan.Text()
		}
	}()
	t.Cleanup(func() {
		_ = stdin.Close() // asks it to end
		kill := time.AfterFunc(10*time.Second, cancel)
		defer kill.Stop()
		<-ended
		if err := cmd.Wait(); err != nil {
			t.Errorf("the peer: %v\n%s", err, failure.String())
		}
		cancel()
	})
	if line := p.next(); line != `{"ready":true}` {
		t.Fatalf("the peer said %q first", line)
	}
	return p
}

// next is what the peer prints next.
func (p *nodePeer) next() string { p.t.Helper(); return wait(p.t, p.lines) }

// A ledger keeps the violations that a callee records.
type ledger chan rpc.SchemaViolation

func (l ledger) RecordSchemaViolation(_ context.Context, v rpc.SchemaViolation) error {
	l <- v
	return nil
}

// We call a peer that knows nothing but the envelope and its replyTo.
func TestCallForeignPeer(t *testing.T) {
	t.Parallel()
	nodeModules(t)
	server := natstest.Run(t, "")
	peer := startNodePeer(t, "serve", server.URL())
	const address = envelope.Address("agent://node-peer")
	client, err := caller.New(caller.Config{
		Self: callerAddress, Records: rpc.Records{Auditor: nobodyAudits{t}}, TenantID: "acme", FleetVersion: "v1.0.0-cut",
		Transports: []transport.Transport{connect(t, nats.Options{Servers: []string{server.URL()}})},
		Peers:      rpc.Peers{address: {Address: address, Transport: "nats", Topic: "agents.node-peer.requests"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()

	const payload = `{"text":"Grüße, 🌍 \u2028 <&>","big":12345678901234567890}`
	res, err := client.RequestAgent(t.Context(), rpc.Request{To: address, Capability: "echo", Payload: json.RawMessage(payload)})
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Echoed struct{ Text string }
		By     string
	}
	if err := json.Unmarshal(res.Response, &answer); err != nil {
		t.Fatal(err)
	}
	if answer.By != "node" || answer.Echoed.Text != "Grüße, 🌍 \u2028 <&>" {
		t.Errorf("answer %+v", answer)
	}
	got, err := envelope.Decode([]byte(peer.next()))
	if err != nil {
		t.Fatalf("what the peer read, printed again: %v", err)
	}
	if version, _ := got.Headers.Get(envelope.HeaderFleetVersion); got.TenantID != "acme" || version != "v1.0.0-cut" || got.Deadline == 0 {
		t.Errorf("the peer read %+v", got)
	}

	res, err = client.RequestAgent(t.Context(), rpc.Request{To: address, Capability: "fail"})
	var failure *rpc.Error
	if !errors.As(err, &failure) || failure.Code != rpc.CodeHandlerError || failure.Message != "it failed" || failure.DetectedBy != address {
		t.Errorf("the peer's own failure: %v, %+v", err, res)
	}
	peer.next()

	if _, err = client.RequestAgent(t.Context(), rpc.Request{To: address, Capability: "note", Mode: rpc.ModeFireAndForget}); err != nil {
		t.Fatal(err)
	}
	if line := peer.next(); !strings.Contains(line, `"kind":"event"`) || strings.Contains(line, "replyTo") {
		t.Errorf("the peer read the event %s", line)
	}
}

// A peer calls us that sends no NATS reply subject, no headers and no deadline.
func TestForeignPeerCalls(t *testing.T) {
	t.Parallel()
	nodeModules(t)
	server := natstest.Run(t, "")
	violations := make(ledger, 8)
	newAuditedPair(t, server.URL(), server.URL(), 10, nil, violations) // the callee
	for name, test := range map[string]struct {
		envelope string
		want     []string
	}{
		"a call":            {`{"capability":"echo","payload":{"nonce":7}}`, []string{`"payload":{"ok":true,"data":{"nonce":7}}`}},
		"with all it knows": {`{"capability":"echo","payload":{"nonce":8},"tenantId":"acme","causedBy":"turn-1","headers":{"x-fleet-version":"v1.2.0-cut","x-own":"1"},"deadline":9007199254740991}`, []string{`"data":{"nonce":8}`, `"tenantId":"acme"`}},
		"a violation":       {`{"capability":"echo","payload":{"nonce":"seven"}}`, []string{`"ok":false`, "EAGENTRPC_SCHEMA_VIOLATION", "/nonce"}},
		"no such function":  {`{"capability":"dance","payload":{}}`, []string{`"ok":false`, "EAGENTRPC_NO_CAPABILITY"}},
		"too late":          {`{"capability":"echo","payload":{"nonce":9},"deadline":1}`, []string{`"ok":false`, "EAGENTRPC_DEADLINE_EXCEEDED"}},
	} {
		t.Run(name, func(t *testing.T) {
			peer := startNodePeer(t, "call", server.URL(), test.envelope)
			reply := peer.next()
			for _, want := range append(test.want, `"kind":"response"`, `"from":"agent://callee"`, `"to":"agent://node-peer"`) {
				if !strings.Contains(reply, want) {
					t.Errorf("reply %s, want %s in it", reply, want)
				}
			}
		})
	}
	if v := wait(t, violations); v.Peer != "agent://node-peer" || v.Side != rpc.SideRequest {
		t.Errorf("the callee recorded %+v", v)
	}
}
