package tasks

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
	DefaultMaxTasks     = 10_000
	DefaultMaxFinished  = 1000
	DefaultMaxTextBytes = 16 << 10
)

const configSchema = `{
  "type": "object",
  "properties": {
    "maxTasks": {"type": "integer", "minimum": 1, "maximum": 1000000, "default": 10000, "description": "of one tenant that are not finished"},
    "maxFinished": {"type": "integer", "minimum": 1, "maximum": 100000, "default": 1000, "description": "of one tenant that are kept after they are done or have failed"},
    "maxTextBytes": {"type": "integer", "minimum": 1, "maximum": 32768, "default": 16384, "description": "of the details, the result and the reason of a task, each, in UTF-8"}
  },
  "additionalProperties": false
}`

// config is what an agent's file says.
type config struct {
	MaxTasks     int64 `json:"maxTasks"`
	MaxFinished  int64 `json:"maxFinished"`
	MaxTextBytes int   `json:"maxTextBytes"`
}

// A Resolver is the capability.
type Resolver struct{ now func() time.Time }

// New returns the capability. Leases run by the clock now, which has to be the same for
// all who share a file; nil stands for [time.Now].
func New(now func() time.Time) *Resolver {
	if now == nil {
		now = time.Now
	}
	return &Resolver{now}
}

var _ registry.Resolver = (*Resolver)(nil)

// Key implements [registry.Resolver].
func (*Resolver) Key() string { return "tasks" }

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
		return nil, registry.Skip("the agent has no state folder to keep tasks in")
	}
	var conf config
	if err := json.Unmarshal(c.JSON, &conf); err != nil {
		return nil, err
	}
	conf.MaxTasks = cmp.Or(conf.MaxTasks, DefaultMaxTasks)
	conf.MaxFinished = cmp.Or(conf.MaxFinished, DefaultMaxFinished)
	conf.MaxTextBytes = cmp.Or(conf.MaxTextBytes, DefaultMaxTextBytes)
	db, err := statedb.Open(ctx, statedb.Options{
		Capability: "tasks", Path: filepath.Join(ctx.StateDir, "tasks.db"), Schema: tables, Version: 1, Logger: ctx.Logger,
	})
	if err != nil {
		return nil, err
	}
	s := registry.NewServer("tasks", "1", c.Tools)
	s.OnClose(db.Close)
	l := &list{db: db, config: conf, now: r.now}
	handlers := map[string]registry.Handler{
		addTask: l.add, listTasks: l.list, getTask: l.get, removeTask: l.remove,
		claimTask: l.claim, extendTask: l.extend, completeTask: l.complete, failTask: l.fail,
	}
	for _, spec := range specs() {
		if err := s.Add(spec, handlers[spec.Key]); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}
