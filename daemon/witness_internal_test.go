package daemon

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/fleet"
)

// A silentWitness cannot be reached.
type silentWitness struct{}

var errSilent = errors.New("it does not answer")

func (silentWitness) Name() string                                   { return "agent://silent" }
func (silentWitness) Latest(context.Context, string) ([]byte, error) { return nil, errSilent }
func (silentWitness) Cosign(context.Context, []byte, int64, tlog.TreeProof) ([]byte, error) {
	return nil, errSilent
}

// An agent with fewer witnesses than it must have warns of that after a minute, until
// there are enough, and stays ready.
func TestWitnessQuorum(t *testing.T) {
	t.Parallel()
	agent := &fleet.AgentFile{}
	d := &Daemon{conditions: health.NewBoard(slog.New(slog.DiscardHandler))}
	d.member.Store(&fleet.Member{Agent: agent})
	now := time.Now()
	after := func(wait time.Duration, a, b, c error) string {
		t.Helper()
		now = now.Add(wait)
		d.showQuorum(map[string]error{"agent://a": a, "agent://b": b, "agent://c": c}, now)
		if err := d.conditions.Err(); err != nil {
			t.Error("not ready:", err)
		}
		return strings.Join(d.conditions.Warnings(), "\n")
	}
	for i, step := range []struct {
		quorum  int
		wait    time.Duration
		a, b, c error
		want    string
	}{
		{0, 0, nil, nil, nil, ""},
		{0, 0, errSilent, nil, nil, ""},
		{0, witnessGrace - 1, errSilent, nil, nil, ""},
		{0, 1, errSilent, nil, nil, "2 of 3 have co-signed its newest checkpoint, 3 must; agent://a: it does not answer"},
		{2, 0, errSilent, nil, nil, ""}, // after a reload
		{2, time.Hour, errSilent, nil, checkpoint.ErrUncosigned, ""},
		{2, witnessGrace, errSilent, nil, checkpoint.ErrUncosigned, "1 of 3 have co-signed its newest checkpoint, 2 must; agent://a: it does not answer; agent://c: "},
		{2, 0, nil, nil, checkpoint.ErrUncosigned, ""},
	} {
		agent.Audit.WitnessQuorum = step.quorum
		if got := after(step.wait, step.a, step.b, step.c); step.want == "" && got != "" || !strings.Contains(got, step.want) {
			t.Errorf("step %d: %q", i, got)
		}
	}
	d.showQuorum(nil, now.Add(time.Hour)) // an agent without witnesses
	if all := d.conditions.Active(); len(all) != 0 {
		t.Errorf("%v", all)
	}
}

// A witness that does not answer for a moment, as at the start of a fleet, is no warning. One
// that does not for a minute is one, once, and another one when it is silent again.
func TestOverdueWitness(t *testing.T) {
	t.Parallel()
	var w auditWatch
	now := time.Now()
	for i, step := range []struct {
		wait time.Duration
		err  error
		want bool
	}{
		{0, errSilent, false},
		{witnessGrace - 1, errSilent, false},
		{1, errSilent, true},
		{time.Hour, errSilent, false},
		{0, nil, false},
		{time.Hour, errSilent, false},
		{2 * witnessGrace, errSilent, true}, // after a long look
		{time.Second, checkpoint.ErrUncosigned, false},
	} {
		now = now.Add(step.wait)
		overdue := w.note(&auditchain.Status{Witnesses: map[string]error{"agent://a": step.err, "agent://b": nil}}, now)
		if want := []string{"agent://a"}; step.want && !slices.Equal(overdue, want) || !step.want && overdue != nil {
			t.Errorf("step %d: %q", i, overdue)
		}
	}
}

// The check of a healthy audit log sees what its witnesses have answered.
func TestAuditCheckSeesWitnesses(t *testing.T) {
	t.Parallel()
	answered := make(chan struct{})
	log, err := auditchain.Open(t.Context(), filepath.Join(t.TempDir(), "audit.db"), auditchain.Options{
		Name: "a", Witnesses: []checkpoint.Witness{silentWitness{}}, OnWitness: func(string, error) { close(answered) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if _, err := log.Append(t.Context(), auditchain.Record{Kind: auditchain.KindLifecycle, Body: []byte(`{"event":"started"}`)}); err != nil {
		t.Fatal(err)
	}
	<-answered
	d := &Daemon{conditions: health.NewBoard(slog.New(slog.DiscardHandler))}
	d.member.Store(&fleet.Member{Agent: &fleet.AgentFile{}})
	d.witnesses.shortSince = time.Now().Add(-witnessGrace)
	if err := d.checkAudit(t.Context(), log); err != nil {
		t.Fatal(err)
	}
	if all := d.conditions.Active(); len(all) != 1 || all[0].Code != "quorum" || !strings.Contains(all[0].Cause, "agent://silent: ") {
		t.Errorf("%+v", all)
	}
}
