package sqlread

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// A Config names a database as the agent's files do: a file of SQLite, or a Postgres by a
// reference to its connection string, which may hold a password.
type Config struct {
	SQLite    string `json:"sqlite,omitempty"`    // the path of a file
	Immutable bool   `json:"immutable,omitempty"` // of SQLite: nobody changes the file
	Postgres  string `json:"postgres,omitempty"`  // a reference, such as env:DATABASE_URL
	TrustRole bool   `json:"trustRole,omitempty"` // of Postgres: the role may reach beyond the database
	MaxRows   int    `json:"maxRows,omitempty"`
	MaxBytes  int64  `json:"maxBytes,omitempty"`
	TimeoutMs int64  `json:"timeoutMs,omitempty"`
}

// ConfigSchema is the JSON Schema of a [Config].
const ConfigSchema = `{
  "type": "object",
  "properties": {
    "sqlite": {"type": "string", "minLength": 1},
    "immutable": {"type": "boolean"},
    "postgres": {"type": "string", "minLength": 1},
    "trustRole": {"type": "boolean"},
    "maxRows": {"type": "integer", "minimum": 1, "maximum": 100000},
    "maxBytes": {"type": "integer", "minimum": 1, "maximum": 67108864},
    "timeoutMs": {"type": "integer", "minimum": 1, "maximum": 600000}
  },
  "additionalProperties": false
}`

// Open returns the database that c names. Relative paths are meant from base; secret
// resolves references.
func Open(c Config, base string, secret func(ref string) (string, error)) (Database, error) {
	limits := Limits{Rows: c.MaxRows, Bytes: c.MaxBytes, Timeout: time.Duration(c.TimeoutMs) * time.Millisecond}
	switch {
	case (c.SQLite == "") == (c.Postgres == ""):
		return nil, errors.New("name one database: sqlite, the path of a file, or postgres, a reference to a connection string")
	case c.SQLite != "" && c.TrustRole:
		return nil, errors.New("trustRole is for postgres")
	case c.Postgres != "" && c.Immutable:
		return nil, errors.New("immutable is for sqlite")
	case c.SQLite != "":
		path := c.SQLite
		if !filepath.IsAbs(path) {
			path = filepath.Join(base, path)
		}
		return OpenSQLite(path, c.Immutable, limits)
	case secret == nil:
		return nil, errors.New("postgres: there is nothing here to resolve references with")
	}
	connString, err := secret(c.Postgres)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	return OpenPostgres(connString, c.TrustRole, limits)
}
