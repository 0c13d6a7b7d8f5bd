package database

import (
	"context"
	"encoding/json"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/sqlread"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/internal/toolerror"
)

// maxBytes bounds the rows where the configuration does not: a result of a tool has at
// most 1 MiB by default, with the columns.
const maxBytes = 512 << 10

// A Resolver makes the capability database.
type Resolver struct{}

// Key implements [registry.Resolver].
func (Resolver) Key() string { return "database" }

// Tools implements [registry.Resolver].
func (Resolver) Tools() []registry.Tool {
	return []registry.Tool{{
		Key: "query_database", Name: "Query Database",
		Description: "Runs one SELECT and returns its rows. Values belong in params: write ? in its place on SQLite, $1 on Postgres. " +
			"Tables are listed in sqlite_schema on SQLite, in information_schema.columns on Postgres.",
	}}
}

// ConfigSchema implements [registry.Resolver].
func (Resolver) ConfigSchema() json.RawMessage { return json.RawMessage(sqlread.ConfigSchema) }

const input = `{
  "type": "object",
  "properties": {
    "query": {"type": "string", "minLength": 1, "maxLength": 65536},
    "params": {"type": "array", "items": {"type": ["string", "number", "boolean", "null"]}, "maxItems": 1000}
  },
  "required": ["query"],
  "additionalProperties": false
}`

// Resolve implements [registry.Resolver]. A database that is not there at present is no
// fault: queries fail until it is.
func (r Resolver) Resolve(ctx registry.Context, c registry.Config) (*registry.Server, error) {
	var config sqlread.Config
	if err := json.Unmarshal(c.JSON, &config); err != nil {
		return nil, err
	}
	if config.MaxBytes == 0 {
		config.MaxBytes = maxBytes
	}
	db, err := sqlread.Open(config, ctx.WorkspaceDir, toolerror.Secret(ctx))
	if err != nil {
		return nil, &registry.ConfigError{Message: err.Error()}
	}
	s := registry.NewServer(r.Key(), "1", c.Tools)
	s.OnClose(db.Close)
	for _, t := range r.Tools() {
		spec := registry.ToolSpec{
			Key: t.Key, Title: t.Name, Description: t.Description, ReadOnly: true, Idempotent: true,
			Input: json.RawMessage(input), Output: json.RawMessage(sqlread.ResultSchema),
		}
		if err := s.Add(spec, toolerror.Handler(ctx.Logger, t.Key, query(db))); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func query(db sqlread.Database) registry.Handler {
	return func(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
		var a struct {
			Query  string            `json:"query"`
			Params []json.RawMessage `json:"params"`
		}
		if err := json.Unmarshal(args, &a); err != nil {
			return nil, failure.Errorf(failure.InvalidArgument, "the arguments are not those of the tool").Because(err)
		}
		result, err := db.Query(ctx, a.Query, a.Params)
		if err != nil {
			return nil, err
		}
		return json.Marshal(result)
	}
}
