package fleet_test

import (
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/fleet"
)

func TestDurable(t *testing.T) {
	load := func(text string) (fleet.Durable, error) {
		f, err := fleet.Load(starter().with(files{"agents/pr-reviewer/agent.yaml": "name: pr-reviewer\n" + text + "\n"}).root(t), fleet.LoadOptions{})
		if err != nil {
			return fleet.Durable{}, err
		}
		m, _ := f.Member("pr-reviewer")
		return m.Agent.Durable, nil
	}
	if d, err := load(""); err != nil || d != (fleet.Durable{}) {
		t.Errorf("by default %+v, %v", d, err)
	}
	d, err := load("durable: {replicas: 3, ackWaitMs: 60000, maxDeliver: 9, resultTtlMs: 3600000, deadTtlMs: 86400000, maxBytes: 1048576}")
	want := fleet.Durable{Replicas: 3, AckWait: time.Minute, MaxDeliver: 9, ResultTTL: time.Hour, DeadTTL: 24 * time.Hour, MaxBytes: 1 << 20}
	if err != nil || d.Position.Line != 2 {
		t.Errorf("%+v, %v", d, err)
	}
	if d.Position = (fleet.Position{}); d != want {
		t.Errorf("%+v, %v", d, err)
	}
	for text, want := range map[string]string{
		"durable: {replicas: 6}": "replicas", "durable: {maxDeliver: 0}": "maxDeliver",
		"durable: {ackWaitMs: 999}": "ackWaitMs", "durable: {resultTtlMs: 1000}": "resultTtlMs", "durable: {maxBytes: 1}": "maxBytes",
		"durable: {ackwaitMs: 1}": `did you mean "ackWaitMs"`, "durable: yes": "mapping",
	} {
		if _, err := load(text); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "agent.yaml:2:") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
