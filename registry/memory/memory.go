package memory

import (
	"cmp"
	"encoding/json"
	"errors"
	"path/filepath"
	"time"

	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/internal/statedb"
)

// The bounds of a configuration that sets none.
const (
	DefaultMaxNotes     = 10_000
	DefaultMaxNoteBytes = 16 << 10
	DefaultMaxBytes     = 64 << 20
)

const configSchema = `{
  "type": "object",
  "properties": {
    "maxNotes": {"type": "integer", "minimum": 1, "maximum": 1000000, "default": 10000, "description": "notes of one tenant"},
    "maxNoteBytes": {"type": "integer", "minimum": 1, "maximum": 262144, "default": 16384, "description": "of the text of one note, in UTF-8"},
    "maxBytes": {"type": "integer", "minimum": 1, "maximum": 1073741824, "default": 67108864, "description": "of the texts of all notes of one tenant"}
  },
  "additionalProperties": false
}`

// config is what an agent's file says.
type config struct {
	MaxNotes     int64 `json:"maxNotes"`
	MaxNoteBytes int   `json:"maxNoteBytes"`
	MaxBytes     int64 `json:"maxBytes"`
}

// A Resolver is the capability.
type Resolver struct{ now func() time.Time }

// New returns the capability. Notes have the times of now; nil stands for [time.Now].
func New(now func() time.Time) *Resolver {
	if now == nil {
		now = time.Now
	}
	return &Resolver{now}
}

var _ registry.Resolver = (*Resolver)(nil)

// Key implements [registry.Resolver].
func (*Resolver) Key() string { return "memory" }

// ConfigSchema implements [registry.Resolver].
func (*Resolver) ConfigSchema() json.RawMessage { return json.RawMessage(configSchema) }

// Tools implements [registry.Resolver].
func (*Resolver) Tools() []registry.Tool {
	specs := specs()
	tools := make([]registry.Tool, len(specs))
	for i, s := range specs {
		tools[i] = registry.Tool{Key: s.Key, Name: s.Title, Description: s.Description}
	}
	return tools
}

// Resolve implements [registry.Resolver].
func (r *Resolver) Resolve(ctx registry.Context, c registry.Config) (*registry.Server, error) {
	if ctx.StateDir == "" {
		return nil, registry.Skip("the agent has no state folder to keep notes in")
	}
	var conf config
	if err := json.Unmarshal(c.JSON, &conf); err != nil {
		return nil, err
	}
	conf.MaxNotes = cmp.Or(conf.MaxNotes, DefaultMaxNotes)
	conf.MaxNoteBytes = cmp.Or(conf.MaxNoteBytes, DefaultMaxNoteBytes)
	conf.MaxBytes = cmp.Or(conf.MaxBytes, DefaultMaxBytes)
	db, err := statedb.Open(ctx, statedb.Options{
		Capability: "memory", Path: filepath.Join(ctx.StateDir, "memory.db"), Schema: tables, Version: 1, Logger: ctx.Logger,
	})
	if err != nil {
		return nil, err
	}
	s := registry.NewServer("memory", "1", c.Tools)
	s.OnClose(db.Close)
	n := &notes{db: db, config: conf, now: r.now}
	handlers := map[string]registry.Handler{
		remember: n.remember, searchNotes: n.search, getNote: n.get, listNotes: n.list, forgetNote: n.forget,
	}
	for _, spec := range specs() {
		if err := s.Add(spec, handlers[spec.Key]); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}
