package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/schema"
)

// A Handler does the work of an action. The parameters have passed the action's schema;
// what it returns is held against the schema of what the action returns. An [*Error] is
// shown to the caller; of any other error, the caller learns that there was one. A
// Handler is called concurrently, and returns soon after ctx has ended.
type Handler func(ctx context.Context, params json.RawMessage, c Context) (json.RawMessage, error)

// A User is on whose behalf an action is executed.
type User struct {
	// ID tells users apart, for rate limits and records.
	ID string
	// Tenant is for whom the user acts, or "". A user has a rate limit for each.
	Tenant string
	// Permissions are what the user has been granted: scopes such as weather:read, or
	// patterns over scopes such as weather:* (package policy has their rules).
	Permissions []string
}

// A Context is what an execution runs in.
type Context struct {
	User User
	// Workspace is the folder that paths begin in, for handlers that work on files.
	Workspace string
	// TraceID is that of the call that the execution is a part of, or "".
	TraceID string
	// Logger is for the handler. Execute sets it, to that of the registry with the
	// action, the user and the trace, unless it is set.
	Logger *slog.Logger
}

// An Execution is what a registry reports about one call of [Registry.Execute].
type Execution struct {
	// Action is the id that the caller named, cut to the length of an id.
	Action string
	// User, Tenant and TraceID are those of the [Context].
	User, Tenant, TraceID string
	// Started and Took are when the execution began, and how long it took.
	Started time.Time
	Took    time.Duration
	// Attempts is how often the handler has run: 0 for a refusal.
	Attempts int
	// Err is nil after a success.
	Err *Error
}

// Options configure a [Registry]. The zero value is usable.
type Options struct {
	// Logger gets what callers must not see. The default discards it.
	Logger *slog.Logger
	// Record is called at the end of every execution, of refused ones too, and before
	// Execute returns. Nil records nothing.
	Record func(ctx context.Context, e Execution)
	// MaxResultBytes bounds a result. The default is 4 MiB.
	MaxResultBytes int
	// Retry is how executions are retried of actions that are idempotent and have failed
	// in a way that may pass. Nil means one attempt.
	Retry *capability.RetryPolicy
	// Limiter counts executions. Registries that share one share the limits of the actions
	// that they have in common. Nil is a limiter of the registry's own.
	Limiter *policy.RateLimiter
}

// A Registry keeps actions and executes them. It is safe for concurrent use.
type Registry struct {
	opts   Options
	limits *policy.RateLimiter

	mu    sync.RWMutex
	all   map[string]*entry
	order []string // ids as they were registered
}

// An entry is an action with what its definition was compiled to.
type entry struct {
	action     Action
	handler    Handler
	parameters *schema.Schema
	returns    *schema.Schema         // nil for any JSON
	limited    *capability.Capability // has the name and the rate limit, for package policy
}

// New returns an empty registry.
func New(o Options) *Registry {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MaxResultBytes <= 0 {
		o.MaxResultBytes = 4 << 20
	}
	if o.Limiter == nil {
		o.Limiter = policy.NewRateLimiter(0)
	}
	return &Registry{opts: o, limits: o.Limiter, all: map[string]*entry{}}
}

// Register adds an action with its handler. It refuses an action that is not defined
// well, and one whose id is taken.
func (r *Registry) Register(a Action, h Handler) error {
	e, err := compile(a)
	if err != nil {
		return fmt.Errorf("action %q: %w", a.ID, err)
	}
	if h == nil {
		return fmt.Errorf("action %q: it has no handler", a.ID)
	}
	e.handler = h
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all[a.ID] != nil {
		return fmt.Errorf("action %q: the id is taken", a.ID)
	}
	r.all[a.ID] = e
	r.order = append(r.order, a.ID)
	return nil
}

// Check returns what [Registry.Register] would refuse about the action alone.
func Check(a Action) error {
	_, err := compile(a)
	return err
}

var validID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)

func compile(a Action) (e *entry, err error) {
	switch {
	case !validID.MatchString(a.ID) || len(a.ID) > capability.MaxNameBytes:
		return nil, fmt.Errorf("its id must be URL-safe, and at most %d bytes: letters, digits, - and _, and a letter or a digit first", capability.MaxNameBytes)
	case a.Permissions == nil:
		return nil, errors.New("it does not say which permissions it needs; an empty list stands for none")
	case a.RateLimit == nil:
		limit := DefaultRateLimit()
		a.RateLimit = &limit
	}
	for _, p := range a.Permissions {
		if err := capability.ParseScope(p); err != nil {
			return nil, err
		}
	}
	if err := a.RateLimit.check(); err != nil {
		return nil, err
	}
	e = &entry{action: a, limited: &capability.Capability{Name: a.ID, RateLimit: a.RateLimit.Bucket()}}
	if e.parameters, err = schema.Compile(a.Parameters); err != nil {
		return nil, fmt.Errorf("parameters: %w", err)
	}
	if root := e.parameters.Root(); !slices.Equal(root.Types(), []schema.Type{schema.TypeObject}) {
		return nil, errors.New("parameters: the type of the root is object")
	}
	if a.Returns == nil {
		return e, nil
	}
	if e.returns, err = schema.Compile(a.Returns); err != nil {
		return nil, fmt.Errorf("returns: %w", err)
	}
	return e, nil
}

// Get returns the action of that id.
func (r *Registry) Get(id string) (Action, bool) {
	if e := r.entry(id); e != nil {
		return e.action, true
	}
	return Action{}, false
}

// A Filter chooses actions. The zero value chooses all.
type Filter struct {
	// Permissions, if there are any, chooses the actions that need one of them.
	Permissions []string
}

// List returns the actions that a filter chooses, in the order of their registration.
func (r *Registry) List(f Filter) []Action {
	r.mu.RLock()
	defer r.mu.RUnlock()
	out := make([]Action, 0, len(r.order))
	for _, id := range r.order {
		a := r.all[id].action
		if len(f.Permissions) == 0 || slices.ContainsFunc(a.Permissions, func(p string) bool { return slices.Contains(f.Permissions, p) }) {
			out = append(out, a)
		}
	}
	return out
}

func (r *Registry) entry(id string) *entry {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.all[id]
}

// ids returns all ids, for hints.
func (r *Registry) ids() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Clone(r.order)
}
