package daemon_test

import (
	"encoding/binary"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"
	natsgo "github.com/nats-io/nats.go"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/natstest"
)

// An agent that asks its peers finds a host whose clock is wrong, whose calls would otherwise just be
// late.
func TestVerifyPeersComparesClocks(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	d := startAgent(t, load(t, natsFiles(server.URL())), "caller")
	conn := natsConn(t, server.URL()).Client()
	answer := func(m *natsgo.Msg) {
		request, err := envelope.Decode(m.Data)
		if err != nil {
			t.Error(err)
			return
		}
		id, err := uuid.NewV7()
		if err != nil {
			t.Error(err)
			return
		}
		ahead := uint64(time.Now().Add(10 * time.Minute).UnixMilli())
		binary.BigEndian.PutUint64(id[:8], ahead<<16|uint64(binary.BigEndian.Uint16(id[6:8])))
		reply := &envelope.Envelope{
			Kind: envelope.Response, MessageID: id.String(), CorrelationID: request.CorrelationID, CausedBy: request.MessageID,
			From: request.To, To: request.From, Capability: request.Capability, Payload: json.RawMessage(`{"ok":true,"data":{}}`),
		}
		data, err := reply.Encode()
		if err == nil {
			err = m.Respond(data)
		}
		if err != nil {
			t.Error(err)
		}
	}
	for _, subject := range []string{calleeSubject, calleeSubject + ".capabilities"} {
		if _, err := conn.Subscribe(subject, answer); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	found := d.VerifyPeers(t.Context(), []envelope.Address{"agent://callee"})
	if len(found) != 1 {
		t.Fatalf("found %+v", found)
	}
	peer := found[0]
	// The question may take its time on a busy machine, never minutes.
	if ahead := time.Duration(peer.ClockSkewMs) * time.Millisecond; ahead < 9*time.Minute || ahead > 10*time.Minute || !peer.WrongClock(0) || peer.WrongClock(10*time.Minute) {
		t.Errorf("found %+v", peer)
	}
	peer.ClockSkewMs = -600_400
	if text := peer.ClockText(); text != "its clock is 10m0s behind this host's: calls between hosts with such clocks lose as much of their deadline" {
		t.Error(text)
	}
}
