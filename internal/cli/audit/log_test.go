package audit

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/clitest"
)

func agents(sources []Source) []string {
	var names []string
	for _, s := range sources {
		names = append(names, s.Agent)
	}
	return names
}

func TestFindSources(t *testing.T) {
	t.Parallel()
	env := newOffice(t, map[string][]auditchain.Record{"clerk": calls(1, "s"), "desk": calls(1, "s")})
	for _, test := range []struct {
		choice Choice
		want   []string
	}{
		{Choice{}, []string{"clerk", "desk"}},
		{Choice{Agent: "desk"}, []string{"desk"}},
		{Choice{DB: "/some/where.db"}, []string{"/some/where.db"}},
	} {
		if got, err := findSources(&env.Env, test.choice); err != nil || !slices.Equal(agents(got), test.want) {
			t.Errorf("%+v: %v, %v; want %v", test.choice, got, err, test.want)
		}
	}
	if _, err := findSources(&env.Env, Choice{Agent: "nobody"}); err == nil || !strings.Contains(err.Error(), `the fleet office has no agent "nobody"`) {
		t.Errorf("%v", err)
	}
}

// A member that never ran has no log, and does not hide those that have one.
func TestFindSourcesOfNewFleet(t *testing.T) {
	t.Parallel()
	env := newOffice(t, nil)
	if _, err := findSources(&env.Env, Choice{}); err == nil || !strings.Contains(err.Error(), "has an audit log yet: run `agentd demo`") {
		t.Errorf("%v", err)
	}
	appendTo(t, dbOf(t, env, "desk"), calls(1, "s")...)
	if got, err := findSources(&env.Env, Choice{}); err != nil || !slices.Equal(agents(got), []string{"desk"}) {
		t.Errorf("%v, %v", got, err)
	}
}

// A database needs no fleet. Inside one, the agent that writes it is found, also
// by another name of the file: its changes must go through that agent.
func TestFindSourcesOfDatabase(t *testing.T) {
	t.Parallel()
	noFleet := clitest.New(t, "")
	if got, err := findSources(&noFleet.Env, Choice{DB: "x.db"}); err != nil || got[0].Socket != "" {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := findSources(&noFleet.Env, Choice{}); err == nil {
		t.Error("found logs without a fleet")
	}
	env := newOffice(t, map[string][]auditchain.Record{"clerk": calls(1, "s"), "desk": calls(1, "s")})
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(dbOf(t, env, "desk"), link); err != nil {
		t.Fatal(err)
	}
	got, err := findSources(&env.Env, Choice{DB: link})
	if err != nil || filepath.Base(got[0].Socket) != "desk.sock" {
		t.Errorf("%v, %v; want desk's socket", got, err)
	}
}

func TestOneLogIsRequired(t *testing.T) {
	t.Parallel()
	env := newOffice(t, map[string][]auditchain.Record{"clerk": calls(1, "s"), "desk": calls(2, "s")})
	err := withOneLog(t.Context(), &env.Env, Choice{}, func(Log) error { t.Error("chose a log"); return nil })
	if clitest.Code(err) != cli.ExitUsage || !strings.Contains(err.Error(), "choose one with --agent clerk, --agent desk, or with --db <file>") {
		t.Errorf("%v", err)
	}
	err = withOneLog(t.Context(), &env.Env, Choice{Agent: "desk"}, func(l Log) error {
		if l.Agent != "desk" {
			t.Errorf("chose %s", l.Agent)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// One unreadable log fails the command: a result without it would look complete.
func TestUnreadableLog(t *testing.T) {
	t.Parallel()
	env := newOffice(t, map[string][]auditchain.Record{"clerk": calls(1, "s")})
	db := dbOf(t, env, "desk")
	if err := os.MkdirAll(filepath.Dir(db), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(db, []byte("no database"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Stats(t.Context(), &env.Env, Choice{}); err == nil || env.Out.String() != "" {
		t.Errorf("%v, and wrote %s", err, env.Out)
	}
	if err := Verify(t.Context(), &env.Env, VerifyRequest{}); err == nil {
		t.Error("verified what is no log")
	}
}
