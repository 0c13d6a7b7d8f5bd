package dbquery_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/agentd/agentd/action"
	"github.com/agentd/agentd/action/dbquery"
	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/pgtest"
	"github.com/agentd/agentd/internal/sqlread"
	"github.com/agentd/agentd/schema"
)

func file(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	db, err := sql.Open("sqlite", filepath.Join(dir, "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), `CREATE TABLE t (id INTEGER, name TEXT); INSERT INTO t VALUES (9007199254740993, 'a'), (2, NULL)`); err != nil {
		t.Fatal(err)
	}
	return dir
}

// parts compiles the schemas of the definition.
func parts(t *testing.T) (parameters, returns *schema.Schema) {
	t.Helper()
	var definition struct{ Parameters, Returns json.RawMessage }
	if err := json.Unmarshal([]byte(dbquery.Definition), &definition); err != nil {
		t.Fatal(err)
	}
	parameters, err := schema.Compile(definition.Parameters)
	if err != nil {
		t.Fatal(err)
	}
	if returns, err = schema.Compile(definition.Returns); err != nil {
		t.Fatal(err)
	}
	return parameters, returns
}

func TestQuery(t *testing.T) {
	parameters, returns := parts(t)
	h, err := dbquery.New(dbquery.Config{Config: sqlread.Config{SQLite: "shop.db", MaxRows: 1}, Base: file(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for params, want := range map[string]string{
		`{"query": "SELECT id, name FROM t WHERE id = ?", "params": [9007199254740993]}`: `{"columns":[{"name":"id","type":"integer"},{"name":"name","type":"text"}],"rows":[{"id":9007199254740993,"name":"a"}],"truncated":false}`,
		`{"query": "SELECT id FROM t ORDER BY id"}`:                                      `{"columns":[{"name":"id","type":"integer"}],"rows":[{"id":2}],"truncated":true}`,
		`{"query": "SELECT id FROM t WHERE 0", "params": []}`:                            `{"columns":[{"name":"id","type":"integer"}],"rows":[],"truncated":false}`,
	} {
		got, err := h.Execute(t.Context(), json.RawMessage(params))
		if err != nil || string(got) != want {
			t.Errorf("%s:\ngot  %s, %v\nwant %s", params, got, err, want)
		}
		if v := append(parameters.Validate([]byte(params)), returns.Validate(got)...); len(v) > 0 {
			t.Errorf("%s: the definition says %v", params, v)
		}
	}
	for params, want := range map[string]failure.Code{
		`{"query": "DROP TABLE t"}`:                 failure.NotAllowed,
		`{"query": "SELECT 1; DROP TABLE t"}`:       failure.InvalidArgument,
		`{"query": "SELECT ?", "params": [[1]]}`:    failure.InvalidArgument,
		`{"query": "SELECT ?", "params": {"a": 1}}`: failure.InvalidArgument,
		`{"query": 1}`:                           failure.InvalidArgument,
		`{}`:                                     failure.InvalidArgument,
		`[]`:                                     failure.InvalidArgument,
		`{"query": "ATTACH '/etc/passwd' AS x"}`: failure.NotAllowed,
		`{"query": "SELECT load_extension('x')"}`:     failure.NotAllowed,
		`{"query": "PRAGMA query_only = 0"}`:          failure.NotAllowed,
		`{"query": "SELECT \u0000 1"}`:                failure.InvalidArgument,
		`{"query": "COPY t TO PROGRAM 'touch /tmp'"}`: failure.InvalidArgument,
	} {
		if got, err := h.Execute(t.Context(), json.RawMessage(params)); failure.As(err) == nil || failure.As(err).Code != want {
			t.Errorf("%s: %s, %v", params, got, err)
		}
	}
}

// The definition is one that package action takes.
func TestDefinition(t *testing.T) {
	a, err := action.Parse([]byte(dbquery.Definition))
	if err == nil {
		err = action.Check(a)
	}
	if err != nil || !a.Idempotent || a.Returns == nil {
		t.Errorf("%s: %v", a.ID, err)
	}
}

// The same on Postgres, whose connection string is a reference.
func TestPostgres(t *testing.T) {
	url := pgtest.Start(t)
	secret := func(ref string) (string, error) {
		if ref != "env:DATABASE_URL" {
			return "", errors.New("not set")
		}
		return url("postgres"), nil
	}
	config := dbquery.Config{Config: sqlread.Config{Postgres: "env:DATABASE_URL", TrustRole: true}, Secret: secret}
	h, err := dbquery.New(config)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	_, returns := parts(t)
	got, err := h.Execute(t.Context(), json.RawMessage(`{"query": "SELECT $1::int8 AS id, $2::text AS name", "params": [9007199254740993, null]}`))
	if want := `{"columns":[{"name":"id","type":"int8"},{"name":"name","type":"text"}],"rows":[{"id":9007199254740993,"name":null}],"truncated":false}`; err != nil || string(got) != want || len(returns.Validate(got)) > 0 {
		t.Errorf("%s, %v", got, err)
	}
	config.TrustRole = false
	if h, err = dbquery.New(config); err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if _, err := h.Execute(t.Context(), json.RawMessage(`{"query": "SELECT 1"}`)); failure.As(err) == nil || failure.As(err).Code != failure.Unavailable {
		t.Errorf("a superuser: %v", err)
	}
}

func TestConfigIsRefused(t *testing.T) {
	for want, c := range map[string]dbquery.Config{
		"name one database":        {},
		"name one database: sqlit": {Config: sqlread.Config{SQLite: "a", Postgres: "env:B"}},
		"nothing here to resolve":  {Config: sqlread.Config{Postgres: "env:B"}},
		"not set":                  {Config: sqlread.Config{Postgres: "env:B"}, Secret: func(string) (string, error) { return "", errors.New("not set") }},
		"connection string":        {Config: sqlread.Config{Postgres: "env:B"}, Secret: func(string) (string, error) { return "postgres://u:s3cret@h:x/", nil }},
		"is for postgres":          {Config: sqlread.Config{SQLite: "a", TrustRole: true}},
		"is for sqlite":            {Config: sqlread.Config{Postgres: "env:B", Immutable: true}},
	} {
		if _, err := dbquery.New(c); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", want, err)
		}
	}
	s, err := schema.Compile([]byte(sqlread.ConfigSchema))
	if err != nil {
		t.Fatal(err)
	}
	if v := s.Validate([]byte(`{"sqlite": "a", "immutable": true, "maxRows": 1, "maxBytes": 1, "timeoutMs": 1, "postgres": "env:A", "trustRole": true}`)); len(v) > 0 {
		t.Error(v)
	}
}
