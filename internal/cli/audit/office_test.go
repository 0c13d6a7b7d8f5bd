package audit

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/internal/cli/clitest"
)

// newOffice returns an environment in a fleet whose members clerk and desk have
// logs with the given records. No records means no log.
func newOffice(t *testing.T, logs map[string][]auditchain.Record) *clitest.Env {
	t.Helper()
	env := clitest.New(t, clitest.Office)
	for agent, records := range logs {
		appendTo(t, dbOf(t, env, agent), records...)
	}
	return env
}

// dbOf returns the path of a member's log.
func dbOf(t *testing.T, env *clitest.Env, agent string) string {
	t.Helper()
	sources, _, err := memberSources(&env.Env)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sources {
		if s.Agent == agent {
			return s.DB
		}
	}
	t.Fatalf("the fleet has no %s", agent)
	return ""
}

// appendTo appends records to a log, which it creates if need be.
func appendTo(t *testing.T, db string, records ...auditchain.Record) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(db), 0o700); err != nil {
		t.Fatal(err)
	}
	log, err := auditchain.Open(t.Context(), db, auditchain.Options{Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if _, err := log.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
}

// calls returns n records of calls in a session.
func calls(n int, session string) []auditchain.Record {
	records := make([]auditchain.Record, n)
	for i := range records {
		records[i] = auditchain.Record{
			Kind: auditchain.KindRPCCall, Session: session, Peer: "agent://clerk", Capability: "file",
			Body: json.RawMessage(`{"status":"ok"}`),
		}
	}
	return records
}

// lines decodes JSON lines.
func lines[T any](t *testing.T, text string) []T {
	t.Helper()
	var all []T
	for line := range strings.Lines(text) {
		var one T
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		all = append(all, one)
	}
	return all
}
