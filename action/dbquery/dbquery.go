package dbquery

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/sqlread"
)

// Definition is the action: its parameters, what it returns and what it needs.
const Definition = `{
  "id": "db-query",
  "name": "Database Query",
  "description": "Execute database query",
  "parameters": {
    "type": "object",
    "properties": {
      "query": {"type": "string", "minLength": 1, "maxLength": 65536, "description": "one SELECT; placeholders are ? for SQLite and $1 for Postgres"},
      "params": {"type": "array", "items": {"type": ["string", "number", "boolean", "null"]}, "maxItems": 1000, "default": []}
    },
    "required": ["query"],
    "additionalProperties": false
  },
  "returns": ` + sqlread.ResultSchema + `,
  "permissions": ["database:read"],
  "idempotent": true
}`

// A Config is what the agent's files say about the action.
type Config struct {
	sqlread.Config
	// Base is the folder that a relative path is meant from: the agent's.
	Base string `json:"-"`
	// Secret resolves a reference to a secret.
	Secret func(ref string) (string, error) `json:"-"`
}

// A Handler runs the action. It is safe for concurrent use.
type Handler struct{ db sqlread.Database }

// New returns a handler. It is an error if the configuration names no database, or a
// reference leads nowhere. A database that is not there at present is none: queries fail
// until it is.
func New(c Config) (*Handler, error) {
	db, err := sqlread.Open(c.Config, c.Base, c.Secret)
	if err != nil {
		return nil, fmt.Errorf("db-query: %w", err)
	}
	return &Handler{db}, nil
}

// Close closes the connections.
func (h *Handler) Close() error { return h.db.Close() }

// Execute runs the query. Errors are [failure.Error].
func (h *Handler) Execute(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	var p struct {
		Query  string            `json:"query"`
		Params []json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, failure.Errorf(failure.InvalidArgument, "the parameters are not those of db-query").Because(err)
	}
	result, err := h.db.Query(ctx, p.Query, p.Params)
	if err != nil {
		return nil, err
	}
	return json.Marshal(result)
}
