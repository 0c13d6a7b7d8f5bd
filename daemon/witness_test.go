package daemon_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/transport/memory"
)

// witnessed is a fleet whose caller has its log witnessed by the callee.
func witnessed(t *testing.T) daemon.Config {
	t.Helper()
	all := files()
	all["caller/agent.yaml"] += "audit: {witnesses: [agent://callee]}\n"
	cfg := load(t, all)
	return withGo(cfg)
}

func origin(t *testing.T, cfg daemon.Config, agent string) string {
	t.Helper()
	r, err := auditchain.OpenReader(t.Context(), cfg.Paths.AuditDB(agent))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	return r.Origin()
}

// A witness holds the log's checkpoint, and whoever asks gets it: the log's own agent
// from afar, and the witness itself.
func TestWitnessHoldsTheCheckpoint(t *testing.T) {
	t.Parallel()
	cfg := witnessed(t)
	f := startFleet(t, cfg)
	defer stop(t, f)
	caller, _ := f.Daemon("caller")
	callee, _ := f.Daemon("callee")
	log := origin(t, cfg, "caller")
	var remote []byte
	eventually.Holds(t, "a checkpoint at the witness", func() bool {
		var err error
		remote, err = caller.Witnessed(t.Context(), "agent://callee", log)
		return err == nil && len(remote) > 0
	})
	own, err := callee.Witnessed(t.Context(), "", log)
	if err != nil || string(own) != string(remote) || !strings.HasPrefix(string(own), log+"\n") {
		t.Errorf("the witness itself has %q, %v; its answer was %q", own, err, remote)
	}
	if note, err := callee.Witnessed(t.Context(), "agent://callee", "agentd.audit/nobody/1"); err != nil || note != nil {
		t.Errorf("of a log that it has not seen: %q, %v", note, err)
	}
	if _, err := caller.Witnessed(t.Context(), "", log); err == nil || !strings.Contains(err.Error(), "agent://caller only calls others") {
		t.Errorf("an agent that cannot be asked: %v", err)
	}
	if all := caller.Warnings(); len(all) != 0 || len(caller.Status().Warnings) != 0 {
		t.Errorf("warnings %v", all)
	}
}

// A log that was replaced is noticed by its witness: both sides record it, and the
// log's agent is not ready until somebody has looked.
func TestReplacedLogIsNoticed(t *testing.T) {
	t.Parallel()
	cfg := witnessed(t)
	f := startFleet(t, cfg)
	caller, _ := f.Daemon("caller")
	log := origin(t, cfg, "caller")
	eventually.Holds(t, "a checkpoint at the witness", func() bool {
		note, err := caller.Witnessed(t.Context(), "agent://callee", log)
		return err == nil && len(note) > 0
	})
	stop(t, f)
	if err := os.RemoveAll(filepath.Dir(cfg.Paths.AuditDB("caller"))); err != nil {
		t.Fatal(err)
	}

	cfg, logged := logTo(cfg)
	f = startFleet(t, cfg)
	caller, _ = f.Daemon("caller")
	eventually.Holds(t, "a conflict", func() bool { return !caller.Status().Ready })
	status := caller.Status()
	if want := "audit-witness: a witness has seen another history of the audit log: "; !strings.HasPrefix(status.Reason, want) ||
		!strings.Contains(status.Reason, "rewritten") || len(status.Conditions) != 1 || status.Conditions[0].Subject != "agent://callee" {
		t.Errorf("the status is %+v", status)
	}
	// The agent's calls do not depend on it.
	if _, err := goCall(t, f); err != nil {
		t.Error(err)
	}
	stop(t, f)
	for agent, want := range map[string]string{"caller": "witness-conflict", "callee": "witness-refused"} {
		peer := map[string]string{"caller": "agent://callee", "callee": "agent://caller"}[agent]
		found := false
		for _, body := range ofKind(t, cfg, agent, auditchain.KindLifecycle) {
			found = found || body["event"] == want && body["peerId"] == peer && body["reason"] != ""
		}
		if !found {
			t.Errorf("%s has no record %s", agent, want)
		}
	}
	if text := logged(); strings.Count(text, "level=ERROR") < 2 {
		t.Errorf("logged %s", text)
	}
}

// A witness serves its fleet and its peers, and no strangers.
func TestWitnessServesNoStrangers(t *testing.T) {
	cfg, logged := logTo(withGo(load(t, files())))
	cfg.Bus = memory.NewBus(memory.Options{})
	f := startFleet(t, cfg)
	defer stop(t, f)
	all := files()
	all["fleet.yaml"] = strings.ReplaceAll(strings.ReplaceAll(all["fleet.yaml"], "{id: callee, path: ./callee}, ", ""), "caller", "stranger")
	all["stranger/agent.yaml"] = "name: stranger\n"
	delete(all, "callee/capabilities.yaml")
	other := load(t, all)
	other.Bus = cfg.Bus
	stranger := startFleet(t, other)
	defer stop(t, stranger)
	d, _ := stranger.Daemon("stranger")
	// The reason stays with the witness.
	if _, err := d.Witnessed(t.Context(), "agent://callee", "any"); err == nil || strings.Contains(err.Error(), "member") {
		t.Errorf("error %v", err)
	}
	if text := logged(); !strings.Contains(text, "agent://stranger asks for a witness, and is neither a member of the fleet nor a peer") {
		t.Errorf("logged %s", text)
	}
}
