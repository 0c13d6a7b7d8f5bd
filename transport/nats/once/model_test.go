package once_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/transport/nats/once"
)

// A told is what a model knows of a request.
type told struct {
	state   callee.PriorState
	payload string
	reply   string
	owner   int // the replica that serves it, or -1
}

// However replicas take turns, they know what one that does everything would know.
func TestReplicasAreAsOne(t *testing.T) {
	url := natstest.Run(t, withJetStream).URL()
	var replicas []*once.Answers
	for range 3 {
		replicas = append(replicas, replica(t, url, forever))
	}
	round := 0
	rapid.Check(t, func(t *rapid.T) {
		round++
		model := map[string]*told{}
		for step := range rapid.IntRange(1, 30).Draw(t, "steps") {
			n := rapid.IntRange(0, len(replicas)-1).Draw(t, "replica")
			key := fmt.Sprintf("model-%d-%s", round, rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key"))
			m := model[key]
			if m == nil {
				m = &told{owner: -1}
				model[key] = m
			}
			if m.owner >= 0 { // the others would wait for it
				m.end(t, replicas[m.owner], key, fmt.Sprintf(`{"step":%d}`, step))
				continue
			}
			payload, repeatable := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "payload"), rapid.Bool().Draw(t, "repeatable")
			prior, err := replicas[n].Begin(t.Context(), request(key), digest(payload), repeatable)
			if err != nil || prior.State != m.state || m.state != callee.PriorNone && prior.Digest != digest(m.payload) || string(prior.Reply) != m.reply {
				t.Fatalf("%s: %+v, %v; want %+v", key, prior, err, m)
			}
			if m.state == callee.PriorNone || m.state == callee.PriorBegun && repeatable && payload == m.payload {
				*m = told{state: callee.PriorBegun, payload: payload, owner: n}
			}
		}
		for key, m := range model {
			if m.owner >= 0 {
				m.end(t, replicas[m.owner], key, `{}`)
			}
		}
	})
}

// end ends a request in one of three ways.
func (m *told) end(t *rapid.T, a *once.Answers, key, reply string) {
	var err error
	switch rapid.IntRange(0, 2).Draw(t, "end") {
	case 0:
		err = a.Finish(t.Context(), request(key), json.RawMessage(reply))
		m.state, m.reply = callee.PriorDone, reply
	case 1:
		err = a.Forget(t.Context(), request(key))
		m.state, m.payload = callee.PriorNone, ""
	default:
		err = a.Leave(t.Context(), request(key))
	}
	if m.owner = -1; err != nil {
		t.Fatal(err)
	}
}
