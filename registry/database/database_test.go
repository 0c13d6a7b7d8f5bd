package database_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/database"
)

func resolve(t *testing.T, workspace, config string, log *bytes.Buffer) (*registry.Resolved, error) {
	t.Helper()
	known := registry.New()
	if err := known.Register(database.Resolver{}); err != nil {
		t.Fatal(err)
	}
	agent, err := known.Resolve(registry.Context{
		Context: t.Context(), WorkspaceDir: workspace, Logger: slog.New(slog.NewTextHandler(log, nil)),
		Secret: func(_ context.Context, ref string) (string, error) {
			if ref != "env:DATABASE_URL" {
				return "", errors.New("environment variable is not set")
			}
			return "postgres://reader:s3cret@127.0.0.1:1/shop?sslmode=disable", nil
		},
	}, []registry.Capability{{Key: "database", Config: json.RawMessage(config)}})
	if err == nil {
		t.Cleanup(func() { agent.Close(context.WithoutCancel(t.Context())) })
	}
	return agent, err
}

// call shows the result, or the code of the error.
func call(t *testing.T, agent *registry.Resolved, args string) string {
	t.Helper()
	result := agent.Call(t.Context(), "query_database", json.RawMessage(args))
	if code := registry.FailureCode(result); code != "" {
		return string(code)
	}
	return fmt.Sprintf("%s", result.StructuredContent)
}

func TestQuery(t *testing.T) {
	dir := t.TempDir()
	var log bytes.Buffer
	agent, err := resolve(t, dir, `{"sqlite": "shop.db", "maxRows": 2}`, &log)
	if err != nil {
		t.Fatal(err)
	}
	// The database comes after the agent.
	if got := call(t, agent, `{"query": "SELECT 1"}`); got != "unavailable" || !strings.Contains(log.String(), "query_database") {
		t.Errorf("no database: %s, and the log has %q", got, &log)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), `CREATE TABLE t (id INTEGER, data BLOB); INSERT INTO t VALUES (9007199254740993, x'00'), (2, NULL), (3, NULL)`); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		`{"query": "SELECT * FROM t WHERE id = ?", "params": [9007199254740993]}`: `{"columns":[{"name":"id","type":"integer"},{"name":"data","type":"blob"}],"rows":[{"id":9007199254740993,"data":"AA=="}],"truncated":false}`,
		`{"query": "SELECT id FROM t ORDER BY id"}`:                               `{"columns":[{"name":"id","type":"integer"}],"rows":[{"id":2},{"id":3}],"truncated":true}`,
		`{"query": "DROP TABLE t"}`:                                               "permission_denied",
		`{"query": "SELECT 1; DROP TABLE t"}`:                                     "invalid_arguments",
		`{"query": "SELECT ?", "params": [[1]]}`:                                  "invalid_arguments",
		`{"query": "SELECT 1", "limit": 1}`:                                       "invalid_arguments",
		`{"query": ""}`:                                                           "invalid_arguments",
		`{}`:                                                                      "invalid_arguments",
	} {
		if got := call(t, agent, args); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", args, got, want)
		}
	}
}

// A server that is down is a clear error for the caller, and one for the operator with
// the cause; neither has the password.
func TestServerIsDown(t *testing.T) {
	var log bytes.Buffer
	agent, err := resolve(t, "", `{"postgres": "env:DATABASE_URL"}`, &log)
	if err != nil {
		t.Fatal(err)
	}
	result := agent.Call(t.Context(), "query_database", json.RawMessage(`{"query": "SELECT 1"}`))
	shown, err := json.Marshal(result)
	if err != nil || registry.FailureCode(result) != registry.Unavailable {
		t.Fatalf("%s, %v", shown, err)
	}
	if all := string(shown) + log.String(); strings.Contains(all, "s3cret") || strings.Contains(string(shown), "127.0.0.1") || !strings.Contains(log.String(), "refused") {
		t.Errorf("%s\n%s", shown, &log)
	}
}

func TestConfigIsRefused(t *testing.T) {
	for config, want := range map[string]string{
		`{}`: "name one database",
		`{"sqlite": "a", "postgres": "env:DATABASE_URL"}`: "name one database",
		`{"postgres": "env:OTHER"}`:                       "not set",
		`{"sqlite": "a", "trustRole": true}`:              "trustRole",
		`{"sqlite": "a", "maxRows": 0}`:                   "maxRows",
		`{"sqlite": "a", "write": true}`:                  "write",
	} {
		if _, err := resolve(t, "", config, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", config, err)
		}
	}
}
