package main

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/agentd/agentd/internal/pgtest"
)

// TestPostgresScripts drives agents whose actions query a real Postgres.
func TestPostgresScripts(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t)
	conn, err := pgx.Connect(t.Context(), url("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"CREATE TABLE t (id bigint, price numeric)", "INSERT INTO t VALUES (9007199254740993, 12345678901234567890.10)",
		"CREATE ROLE clerk LOGIN", "GRANT ALL ON t TO clerk",
	} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	params := scriptParams(t, "postgres")
	setup := params.Setup
	params.Setup = func(env *testscript.Env) error {
		env.Setenv("POSTGRES", url("clerk"))
		env.Setenv("POSTGRES_ADMIN", url("postgres"))
		return setup(env)
	}
	// Its scripts are parallel: the server must outlive them, as it does in a subtest.
	t.Run("queries", func(t *testing.T) { testscript.Run(t, params) })
}
