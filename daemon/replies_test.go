package daemon_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/rpc"
)

// A caller cannot make an agent publish for it: not to another agent, nor to the
// server, whichever reply subject it names and in whichever way.
func TestRepliesGoToTheCallerAlone(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "jetstream {}")
	all := natsFiles(server.URL())
	on := "transports: [{kind: nats, servers: ['" + server.URL() + "'], subjects: {requests: agents.listed.requests}}]"
	all["rpc-peers.yaml"] += "  - {agent: agent://listed, replyTopics: [listed.answers], " + on + "}\n"
	cfg := load(t, all)
	ran := make(chan string, 99)
	cfg.Handlers = handle(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		ran <- string(inv.Payload)
		return inv.Payload, nil
	})
	startAgent(t, cfg, "callee")

	nc := natsConn(t, server.URL()).Client()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "VICTIM", Subjects: []string{"victim.>", "agents.victim.>", "_INBOX.victim.>"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "victim.precious", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	send := func(subject, from, replyTo, reply string, payload any) {
		t.Helper()
		e := map[string]any{
			"version": 1, "kind": "request", "messageId": natsgo.NewInbox(), "correlationId": "c-1", "from": "agent://" + from, "to": "agent://callee",
			"capability": "go", "payload": payload, "auth": map[string]string{"kind": "internal"},
		}
		if strings.HasSuffix(subject, ".capabilities") {
			e["capability"] = "agentd.capabilities"
		}
		if replyTo != "" {
			e["replyTo"] = "nats://" + replyTo
		}
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if err := nc.PublishMsg(&natsgo.Msg{Subject: subject, Reply: reply, Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	attacks := 0
	for _, target := range []string{
		"$JS.API.STREAM.PURGE.VICTIM", "$JS.API.STREAM.DELETE.VICTIM", "victim.x", "agents.victim.requests", "agents.victim.responses", "_INBOX.victim.x",
	} {
		for _, subject := range []string{"agents.callee.requests", "agents.callee.requests.capabilities"} {
			send(subject, "mallory", target, "", map[string]int{"n": 1})
			send(subject, "mallory", "", target, map[string]int{"n": 1})
			attacks += 2
		}
		if strings.HasPrefix(target, "_INBOX.") {
			continue // a discovery request names no sender: any inbox may be its own
		}
		for _, verb := range []string{"PING", "INFO", "STATS"} {
			if err := nc.PublishRequest("$SRV."+verb+".callee", target, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	// What is the caller's own is answered, and messages keep their order: by then the
	// attacks are over.
	for from, replyTo := range map[string]string{"mallory": "_INBOX.mallory.x", "listed": "listed.answers", "reference": "agents.reference.responses", "plain": natsgo.NewInbox()} {
		sub, err := nc.SubscribeSync(replyTo)
		if err != nil {
			t.Fatal(err)
		}
		for _, way := range [][2]string{{replyTo, ""}, {"", replyTo}} {
			send("agents.callee.requests", from, way[0], way[1], map[string]int{"n": 2})
			m, err := sub.NextMsgWithContext(t.Context())
			if err != nil || !strings.Contains(string(m.Data), `"ok":true`) {
				t.Fatalf("%s at %v: %v", from, way, err)
			}
		}
	}
	s, err := js.Stream(t.Context(), "VICTIM")
	if err != nil {
		t.Fatal(err)
	}
	if msgs := s.CachedInfo().State.Msgs; msgs != 1 {
		t.Errorf("the victim's stream has %d messages, want the one it had", msgs)
	}
	if len(ran) != 8 {
		t.Errorf("%d calls ran, want the 8 with a reply subject of the caller", len(ran))
	}
	records := ofKind(t, cfg, "callee", auditchain.KindAuthCheck)
	if len(records) == 0 || records[0]["reason"] != "foreign-reply" {
		t.Errorf("of %d attacks the audit log has %d records", attacks, len(records))
	}
}
