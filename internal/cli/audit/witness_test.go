package audit

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/clitest"
	"github.com/agentd/agentd/internal/output"
)

func TestParseWitnesses(t *testing.T) {
	t.Parallel()
	env := &clitest.New(t, clitest.Office).Env
	folder := t.TempDir()
	got, err := parseWitnesses(env, []string{"agent://librarian", folder, "clerk"})
	if err != nil || len(got) != 3 || got[0].folder == nil || got[1].agent != "agent://librarian" || got[2].agent != "agent://clerk" {
		t.Errorf("%+v, %v", got, err)
	}
	// Without a fleet there are addresses and folders.
	if got, err := parseWitnesses(&cli.Env{FleetDir: folder, Getenv: env.Getenv}, []string{folder}); err != nil || len(got) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	file := filepath.Join(folder, "friday.checkpoint")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for value, code := range map[string]int{"agent://a..b": cli.ExitUsage, file: cli.ExitUsage, filepath.Join(folder, "none"): cli.ExitFailed} {
		if _, err := parseWitnesses(env, []string{value}); clitest.Code(err) != code || !strings.HasPrefix(err.Error(), "--witness: ") {
			t.Errorf("%s: %v, want status %d", value, err, code)
		}
	}
}

// Whose fleet cannot be read is told so: a folder does not stand in for the member of its
// name, and the keys that the fleet pins are not left out.
func TestWitnessesOfAFaultyFleet(t *testing.T) {
	t.Parallel()
	for what, damage := range map[string]func(manifest string) error{
		"faulty": func(manifest string) error { return os.WriteFile(manifest, []byte("agents: ["), 0o600) },
		// Not even root can read what a link to itself leads to.
		"unreadable": func(manifest string) error {
			return errors.Join(os.Remove(manifest), os.Symlink(filepath.Base(manifest), manifest))
		},
		"of a faulty agent": func(manifest string) error {
			return os.WriteFile(filepath.Join(filepath.Dir(manifest), "clerk", "agent.yaml"), []byte("audit: ["), 0o600)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			env := &clitest.New(t, clitest.Office).Env
			if err := damage(filepath.Join(env.FleetDir, fleet.ManifestName)); err != nil {
				t.Fatal(err)
			}
			folder := t.TempDir()
			if got, err := parseWitnesses(env, []string{folder}); err == nil {
				t.Errorf("taken for witnesses: %+v", got)
			}
			opts := auditchain.VerifyOptions{}
			if err := pinWitnesses(env, Log{}, nil, &opts); err == nil {
				t.Error("the keys of the witnesses are left out")
			}
		})
	}
}

// witnesses answers for an agent.
type witnesses map[envelope.Address]string

func (w witnesses) Witnessed(_ context.Context, by envelope.Address, _ string) ([]byte, error) {
	if note, ok := w[by]; ok {
		return []byte(note), nil
	}
	return nil, errors.New("no such witness")
}

func listen(t *testing.T, w witnesses) (socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "agentd") // t.TempDir is too long for the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket = filepath.Join(dir, "a.sock")
	server, err := control.Listen(t.Context(), socket, control.NewHandler(control.Agent{Witnesses: w}), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Shutdown(context.Background()) })
	return socket
}

// A witness on this machine is asked directly. One elsewhere is asked through the
// agent of the log, which names it.
func TestAgentWitness(t *testing.T) {
	t.Parallel()
	here := listen(t, witnesses{"": "its own note"})
	via := listen(t, witnesses{"agent://w": "a note from afar"})
	gone := filepath.Join(t.TempDir(), "gone.sock")
	for name, test := range map[string]struct {
		witness agentWitness
		want    string
		fails   string
	}{
		"here":             {agentWitness{"agent://w", here, via}, "its own note", ""},
		"elsewhere":        {agentWitness{"agent://w", gone, via}, "a note from afar", ""},
		"unknown":          {agentWitness{"agent://x", gone, via}, "", "no such witness"},
		"nobody runs":      {agentWitness{"agent://w", gone, gone}, "", "agent://w does not run on this machine, and the agent of the log"},
		"no agent to pass": {agentWitness{"agent://w", gone, ""}, "", "no agentd answers on"},
	} {
		note, err := test.witness.Latest(t.Context(), "origin")
		if string(note) != test.want || (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
			t.Errorf("%s: %q, %v", name, note, err)
		}
	}
	for _, w := range []interface {
		Cosign(context.Context, []byte, int64, tlog.TreeProof) ([]byte, error)
	}{agentWitness{}, folderWitness{}} {
		if _, err := w.Cosign(t.Context(), nil, 0, nil); !errors.Is(err, errCannotCosign) {
			t.Errorf("%T: %v", w, err)
		}
	}
}

// The verdict on each log has its own line; one broken chain is a finding, and
// the other log is verified all the same.
func TestVerifySeveral(t *testing.T) {
	t.Parallel()
	env := newOffice(t, map[string][]auditchain.Record{"clerk": calls(2, "s"), "desk": calls(3, "s")})
	env.Format = output.JSONL
	other := newOffice(t, map[string][]auditchain.Record{"desk": calls(2, "other")})
	// The log of another history, in place of desk's, with its files.
	for _, suffix := range []string{"", ".pub", ".checkpoint"} {
		text, err := os.ReadFile(dbOf(t, other, "desk") + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if suffix == "" {
			if err := os.WriteFile(dbOf(t, env, "desk"), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	err := Verify(t.Context(), &env.Env, VerifyRequest{})
	type verdict struct {
		Agent  string
		OK     bool
		Faults []json.RawMessage
	}
	got := lines[verdict](t, env.Out.String())
	if clitest.Code(err) != cli.ExitFinding || len(got) != 2 || !got[0].OK || got[1].OK || len(got[1].Faults) == 0 {
		t.Errorf("%v: %s", err, env.Out)
	}
	env.Reset()
	env.Format = output.Table
	_ = Verify(t.Context(), &env.Env, VerifyRequest{Tenant: "default"})
	if !strings.Contains(env.Out.String(), `✓ clerk: chain intact — 2 records verified, 2 of them under a signed checkpoint, 2 of tenant "default"`) ||
		!strings.Contains(env.Out.String(), "✗ desk: chain verification failed") {
		t.Errorf("%s", env.Out)
	}
}

func TestStatsTable(t *testing.T) {
	t.Parallel()
	env := newOffice(t, map[string][]auditchain.Record{"desk": append(calls(3, "s"), auditchain.Record{Kind: auditchain.KindLifecycle})})
	if err := Stats(t.Context(), &env.Env, Choice{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"desk   database         " + dbOf(t, env, "desk"), "desk   records          4, the newest is number 4", "desk   last checkpoint  covers the records up to number 4",
		"desk   kind        rpc_call       3\ndesk   kind        lifecycle      1", "desk   peer        agent://clerk  3", "desk   capability  file           3",
	} {
		if !strings.Contains(env.Out.String(), want) {
			t.Errorf("no %q in\n%s", want, env.Out)
		}
	}
	if strings.Contains(env.Out.String(), "CONFLICT") || strings.Contains(env.Out.String(), "co-signed") {
		t.Errorf("witnesses of a log that has none:\n%s", env.Out)
	}
}

// A log without records has no times and no counts.
func TestStatsOfEmptyLog(t *testing.T) {
	t.Parallel()
	env := newOffice(t, map[string][]auditchain.Record{"desk": nil})
	if err := Stats(t.Context(), &env.Env, Choice{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(env.Out.String(), "none yet") || strings.Contains(env.Out.String(), "oldest") || strings.Contains(env.Out.String(), "AGENT  BY") {
		t.Errorf("%s", env.Out)
	}
}
