package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/rpc"
)

// A crook is a member of the fleet with a key of its own, on a broker without permissions:
// it reads every message, and writes what it likes.
type crook struct {
	t    *testing.T
	nc   *natsgo.Conn
	keys map[string]*identity.Keyring // of mallory, and of caller, for what caller has sent to mallory
	sent int
}

const calleeSubject = "agents.callee.requests"

// request is a good one, from mallory to callee.
func (c *crook) request() *envelope.Envelope {
	c.sent++
	return &envelope.Envelope{
		Kind: envelope.Request, MessageID: fmt.Sprintf("m-%d", c.sent), CorrelationID: fmt.Sprintf("c-%d", c.sent), From: "agent://mallory", To: "agent://callee",
		Capability: "go", Deadline: time.Now().Add(time.Minute).UnixMilli(), Payload: json.RawMessage(`{"n":1}`), ReplyTo: "nats://_INBOX.mallory.x",
	}
}

// sign encodes a message with the proof of an agent.
func (c *crook) sign(e *envelope.Envelope, as string) []byte {
	c.t.Helper()
	data, err := e.EncodeSigned(c.keys[as])
	if err != nil {
		c.t.Fatal(err)
	}
	return data
}

func (c *crook) send(data []byte) {
	c.t.Helper()
	if err := c.nc.Publish(calleeSubject, data); err != nil {
		c.t.Fatal(err)
	}
}

// The attacks of a peer: each is a message to callee that must run nothing.
func (c *crook) attacks() map[string]func() []byte {
	signed := func(change func(e *envelope.Envelope)) func() []byte {
		return func() []byte {
			e := c.request()
			change(e)
			return c.sign(e, "mallory")
		}
	}
	afterwards := func(old, new string) func() []byte {
		return func() []byte {
			data := c.sign(c.request(), "mallory")
			changed := bytes.Replace(data, []byte(old), []byte(new), 1)
			if bytes.Equal(changed, data) {
				c.t.Errorf("there is no %s in %s", old, data)
			}
			return changed
		}
	}
	return map[string]func() []byte{
		"in another's name, without a proof": func() []byte {
			e := c.request()
			e.From, e.Auth = "agent://caller", envelope.Auth{Kind: envelope.AuthInternal}
			data, _ := e.Encode()
			return data
		},
		"in one's own name, without a proof": func() []byte {
			e := c.request()
			e.Auth = envelope.Auth{Kind: envelope.AuthInternal}
			data, _ := e.Encode()
			return data
		},
		"in another's name, with one's own proof":       signed(func(e *envelope.Envelope) { e.From = "agent://caller" }),
		"in a stranger's name":                          signed(func(e *envelope.Envelope) { e.From = "agent://nobody" }),
		"the payload changed after signing":             afterwards(`{"n":1}`, `{"n":2}`),
		"the capability changed after signing":          afterwards(`"go"`, `"cat"`),
		"the tenant added after signing":                afterwards(`"payload"`, `"tenantId":"acme","payload"`),
		"the reply topic changed after signing":         afterwards(`_INBOX.mallory.x`, `_INBOX.caller.xx`),
		"a second sender after signing":                 afterwards(`"capability"`, `"from":"agent://caller","capability"`),
		"a member that no version knows, after signing": afterwards(`"capability"`, `"extra":1,"capability"`),
		"for another agent":                             signed(func(e *envelope.Envelope) { e.To = "agent://caller" }),
		"too late":                                      signed(func(e *envelope.Envelope) { e.Deadline = time.Now().Add(-time.Minute).UnixMilli() }),
		"for a tenant that the agent does not serve":    signed(func(e *envelope.Envelope) { e.TenantID = "other" }),
		"for a tenant that is a path":                   signed(func(e *envelope.Envelope) { e.TenantID = "../../x" }),
		"for a tenant that it may not name":             signed(func(e *envelope.Envelope) { e.TenantID = "acme" }),
		"a capability that does not exist":              signed(func(e *envelope.Envelope) { e.Capability = "rm" }),
		"a capability that is agentd's own":             signed(func(e *envelope.Envelope) { e.Capability = "agentd.witness" }),
		"a payload against the schema":                  signed(func(e *envelope.Envelope) { e.Payload = json.RawMessage(`{"n":"1"}`) }),
		"a payload that repeats a member":               signed(func(e *envelope.Envelope) { e.Payload = json.RawMessage(`{"n":"1","n":1}`) }),
		"a payload too large": signed(func(e *envelope.Envelope) {
			e.Payload = json.RawMessage(`{"n":1,"x":"` + strings.Repeat("x", 2000) + `"}`)
		}),
		"a payload too deep": signed(func(e *envelope.Envelope) {
			e.Payload = json.RawMessage(strings.Repeat("[", 600) + strings.Repeat("]", 600))
		}),
		"an answer to another agent":               signed(func(e *envelope.Envelope) { e.ReplyTo = "nats://_INBOX.caller.x" }),
		"an answer to the server":                  signed(func(e *envelope.Envelope) { e.ReplyTo = "nats://$JS.API.STREAM.PURGE.X" }),
		"an answer to an agent's requests":         signed(func(e *envelope.Envelope) { e.ReplyTo = "nats://agents.caller.requests" }),
		"hops that never end":                      signed(func(e *envelope.Envelope) { e.Headers = e.Headers.With(envelope.HeaderHops, "99") }),
		"a correlation id that no record can have": signed(func(e *envelope.Envelope) { e.CorrelationID = strings.Repeat("c", 5000) }),
		"what another agent has sent to it, passed on": func() []byte {
			e := c.request()
			e.From, e.To = "agent://caller", "agent://mallory"
			return c.sign(e, "caller")
		},
		"the same with another addressee written in": func() []byte {
			e := c.request()
			e.From, e.To = "agent://caller", "agent://mallory"
			return bytes.Replace(c.sign(e, "caller"), []byte(`"to":"agent://mallory"`), []byte(`"to":"agent://callee"`), 1)
		},
		"no JSON":                        func() []byte { return []byte("\xff\x00{") },
		"an envelope of another version": afterwards(`"version":1`, `"version":9`),
		"a proof of another kind":        afterwards(`"kind":"hmac"`, `"kind":"none"`),
		"a proof by another key":         afterwards(`"signature":"`, `"signature":"AAAA`),
	}
}

// Whatever a peer sends that it may not, its callee's skill does not run; and what it sends
// twice runs once.
func TestHostilePeer(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	all := natsFiles(server.URL())
	all["callee/agent.yaml"] += "tenants: [default, acme]\nsecurity: {requireAuth: true}\n"
	all["callee/agent.yaml"] = strings.Replace(all["callee/agent.yaml"], "shutdownTimeoutMs: 20000", "shutdownTimeoutMs: 20000, maxPayloadBytes: 1024", 1)
	all["rpc-peers.yaml"] += "  - {agent: agent://caller, tenants: [acme], transports: [{kind: nats, servers: ['" + server.URL() + "'], subjects: {requests: agents.caller.requests}}]}\n"
	cfg := load(t, all)
	ran := make(chan string, 99)
	cfg.Handlers = handle(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		ran <- inv.CorrelationID
		return inv.Payload, nil
	})
	publishKeys(t, cfg, "caller", "callee", "mallory")
	cfg = reread(t, cfg)
	startAgent(t, cfg, "callee")

	c := &crook{t: t, nc: natsConn(t, server.URL()).Client(), keys: map[string]*identity.Keyring{}}
	public := map[envelope.Address]identity.Peer{}
	for _, agent := range []string{"caller", "callee", "mallory"} {
		keys, err := identity.Store{Path: cfg.Paths.Identity(agent)}.Keys()
		if err != nil {
			t.Fatal(err)
		}
		public[envelope.AddressOf(agent)] = identity.Peer{Public: []identity.PublicKey{{Key: keys[0].Public}}}
	}
	for _, agent := range []string{"caller", "mallory"} {
		keys, err := identity.Store{Path: cfg.Paths.Identity(agent)}.Keys()
		if err == nil {
			c.keys[agent], err = identity.NewKeyring(identity.Options{Self: envelope.AddressOf(agent), Own: keys, Peers: public})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	// What a good message does, and the same message again: the other side of each attack.
	answers, err := c.nc.SubscribeSync("_INBOX.mallory.x")
	if err != nil {
		t.Fatal(err)
	}
	good := func() []byte {
		t.Helper()
		data := c.sign(c.request(), "mallory")
		c.send(data)
		for id := fmt.Sprintf(`"causedBy":"m-%d"`, c.sent); ; { // answers to attacks come here, too
			m, err := answers.NextMsgWithContext(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(m.Data, []byte(id)) {
				if !bytes.Contains(m.Data, []byte(`"ok":true`)) {
					t.Fatalf("a good message: %s", m.Data)
				}
				<-ran
				return data
			}
		}
	}
	repeated := good()
	attacks := c.attacks()
	attacks["a good message again"] = func() []byte { return repeated }
	for name, attack := range attacks {
		c.send(attack())
		good() // messages keep their order: the attack is over
		select {
		case id := <-ran:
			t.Errorf("%s: the skill ran (%s)", name, id)
		default:
		}
	}
	if n := len(ofKind(t, cfg, "callee", auditchain.KindAuthCheck)); n == 0 {
		t.Error("no refusal is on record")
	}
}

// Whoever reads a request on the broker can answer it first. Only the callee's own answer,
// to this request, is one.
func TestForgedAnswers(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	cfg := load(t, natsFiles(server.URL()))
	release := make(chan struct{})
	cfg.Handlers = handle(echoAfter(release))
	publishKeys(t, cfg, "callee", "caller", "mallory")
	cfg = reread(t, cfg)
	startAgent(t, cfg, "callee")
	caller := startAgent(t, cfg, "caller")
	nc := natsConn(t, server.URL()).Client()
	keys, err := identity.Store{Path: cfg.Paths.Identity("mallory")}.Keys()
	if err != nil {
		t.Fatal(err)
	}
	callerKeys, err := identity.Store{Path: cfg.Paths.Identity("caller")}.Keys()
	if err != nil {
		t.Fatal(err)
	}
	own, err := identity.NewKeyring(identity.Options{Self: "agent://mallory", Own: keys, Peers: map[envelope.Address]identity.Peer{
		"agent://caller": {Public: []identity.PublicKey{{Key: callerKeys[0].Public}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	forged := make(chan struct{}, 99)
	if _, err := nc.Subscribe(calleeSubject, func(m *natsgo.Msg) {
		request, err := envelope.Decode(m.Data)
		if err != nil {
			t.Error(err)
			return
		}
		topic := m.Reply
		if topic == "" {
			topic = strings.TrimPrefix(request.ReplyTo, "nats://")
		}
		for _, from := range []envelope.Address{"agent://callee", "agent://mallory"} {
			answer := &envelope.Envelope{
				Kind: envelope.Response, MessageID: "forged-" + from.ID(), CorrelationID: request.CorrelationID, CausedBy: request.MessageID, From: from, To: request.From,
				Capability: request.Capability, Payload: json.RawMessage(`{"ok":true,"result":{"n":666}}`), Auth: envelope.Auth{Kind: envelope.AuthInternal},
			}
			bare, err := answer.Encode()
			if err != nil {
				t.Error(err)
			}
			signed, err := answer.EncodeSigned(own)
			if err != nil {
				t.Error(err)
			}
			for _, data := range [][]byte{bare, signed, m.Data} {
				if err := nc.Publish(topic, data); err != nil {
					t.Error(err)
				}
			}
		}
		if err := nc.Flush(); err != nil {
			t.Error(err)
		}
		forged <- struct{}{}
	}); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	type outcome struct {
		result *rpc.Result
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		result, err := caller.Client().RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: "go", Payload: json.RawMessage(`{"n":1}`)})
		done <- outcome{result, err}
	}()
	select {
	case <-forged:
	case o := <-done:
		t.Fatalf("the call ended: %+v, %v", o.result, o.err)
	}
	close(release)
	if o := <-done; o.err != nil || string(o.result.Response) != `{"n":1}` {
		t.Errorf("%+v, %v", o.result, o.err)
	}
}
