package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/agentd/agentd/action"
	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/schema"
)

// An Env is the agent that an action is opened for.
type Env struct {
	// Dir is the agent's folder, in which relative paths of a configuration begin.
	Dir string
	// Secret returns the secret that a reference, such as env:TOKEN, leads to.
	Secret func(ref string) (string, error)
}

// A Definition is an action that agentd has.
type Definition struct {
	// Action is what it offers.
	Action action.Action
	// Config is the JSON Schema of its configuration.
	Config json.RawMessage

	open func(config json.RawMessage, env Env) (runner, error)
}

// A runner is what the packages of the actions make of a configuration.
type runner interface {
	// Execute runs the action. The errors for its caller are [failure.Error].
	Execute(ctx context.Context, params json.RawMessage) (json.RawMessage, error)
	Close() error
}

// Find returns the definition of an action.
func Find(id string) (Definition, bool) {
	for _, d := range All() {
		if d.Action.ID == id {
			return d, true
		}
	}
	return Definition{}, false
}

// An Opened is an action that can run. It is safe for concurrent use.
type Opened struct {
	Action action.Action
	runner runner
}

// Open opens an action with a configuration that fits its schema. Close it.
func Open(id, config string, env Env) (*Opened, error) {
	d, ok := Find(id)
	if !ok {
		return nil, fmt.Errorf("there is no action %q", id)
	}
	r, err := d.open(json.RawMessage(config), env)
	if err != nil {
		return nil, err
	}
	return &Opened{Action: d.Action, runner: r}, nil
}

// Close ends what the action keeps open. No execution may run.
func (o *Opened) Close() error { return o.runner.Close() }

// Run is the action's [action.Handler].
func (o *Opened) Run(ctx context.Context, params json.RawMessage, _ action.Context) (json.RawMessage, error) {
	out, err := o.runner.Execute(ctx, params)
	if f := failure.As(err); f != nil {
		return nil, action.Errorf(action.Code(f.Code), "%s", f.Text).Because(cause(f))
	}
	return out, err
}

// cause is what the log has to say beyond the text for the caller.
func cause(f *failure.Error) error {
	if f.Err == nil {
		return nil
	}
	return f.Err
}

// Known returns the actions in the form in which package fleet reads their use.
func Known() []fleet.KnownAction {
	all := All()
	known := make([]fleet.KnownAction, len(all))
	for i, d := range all {
		a := d.Action
		known[i] = fleet.KnownAction{
			Capability: &capability.Capability{
				Name: a.ID, Title: a.Name, Description: a.Description, Permissions: a.Permissions, Idempotent: a.Idempotent,
				Input: contract(a.Parameters), Output: contract(a.Returns),
			},
			Config: compiled(d.Config),
		}
		if l := a.RateLimit; l != nil {
			known[i].Capability.RateLimit = l.Bucket()
		}
	}
	return known
}

func contract(source json.RawMessage) *capability.Contract {
	if s := compiled(source); s != nil {
		return &capability.Contract{Source: source, Schema: s, Validator: s}
	}
	return nil
}

// compiled compiles a schema of this package's own, which a test has compiled before.
func compiled(source json.RawMessage) *schema.Schema {
	s, err := schema.Compile(source)
	if err != nil {
		return nil
	}
	return s
}

// decode reads a configuration.
func decode(config json.RawMessage, into any) error {
	d := json.NewDecoder(strings.NewReader(string(config)))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("the configuration is not the action's: %w", err)
	}
	return nil
}

// parsed reads a definition of this project's own, which a test has read before.
func parsed(definition string) action.Action {
	a, err := action.Parse([]byte(definition))
	if err != nil {
		return action.Action{}
	}
	return a
}

var errNoSecrets = errors.New("there is nothing here to resolve references with")

// secret returns the resolver of an environment, which may have none.
func (e Env) secret() func(ref string) (string, error) {
	if e.Secret == nil {
		return func(string) (string, error) { return "", errNoSecrets }
	}
	return e.Secret
}
