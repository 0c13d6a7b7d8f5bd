package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/agentd/agentd/internal/strictyaml"
)

type (
	// A LoadError holds every fault of the capabilities of an agent, each at its place.
	LoadError = strictyaml.Error
	// A Fault is one of them.
	Fault = strictyaml.Fault
	// A Position is a place in a file: line, column, JSON pointer.
	Position = strictyaml.Position
)

// A Tool is one that a capability can provide.
type Tool struct {
	// Key is the name of the tool as its server shows it: 1 to 64 letters, digits, _
	// and -, which every model provider takes.
	Key string `json:"key"`
	// Name is for people, Description also for models. Neither is empty.
	Name        string `json:"name"`
	Description string `json:"description"`
}

// A Resolver makes one capability. Its methods are safe for concurrent use.
type Resolver interface {
	// Key is the name of the capability, as agents list it. It has the form of a tool's
	// key.
	Key() string
	// Tools are all that the capability can provide. They are known without starting
	// anything.
	Tools() []Tool
	// ConfigSchema judges the capability's configuration, without the key tools. It is
	// written in the subset that package schema describes. Nil means that the
	// capability takes no configuration.
	ConfigSchema() json.RawMessage
	// Resolve makes the server of one agent, with the tools of config.Tools and no
	// others. An error that [Skip] made skips the capability, and so does a nil server;
	// a [*ConfigError] is a fault of the agent's configuration. Any other error is a
	// fault as well.
	Resolve(ctx Context, config Config) (*Server, error)
}

// An AgentResolver is a resolver whose tools depend on the agent or on the
// configuration. Its Tools are those that every agent has, possibly none.
type AgentResolver interface {
	Resolver
	// AgentTools are all tools that the capability can provide to this agent under this
	// configuration, which has passed the schema. It starts nothing that outlives the
	// call. Its errors are those of Resolve.
	AgentTools(ctx Context, config json.RawMessage) ([]Tool, error)
}

// A Context tells a resolver for which agent it resolves. All resolvers get the same,
// and none gets to know through which channel the agent talks. The embedded context
// bounds the resolution, and says nothing about the calls that follow it.
type Context struct {
	context.Context
	// Agent is the agent's id.
	Agent string
	// AgentDir is the folder of the agent's files, WorkspaceDir what relative paths of
	// its configuration refer to, and StateDir where its data are kept. All are
	// absolute; "" means that there is none.
	AgentDir, WorkspaceDir, StateDir string
	// Logger takes what the capabilities report. Resolve replaces nil by one that
	// discards.
	Logger *slog.Logger
	// Secret returns the secret that a reference leads to. Nil means that there are
	// none.
	Secret func(ctx context.Context, ref string) (string, error)
	// Limits bound the calls of tools.
	Limits Limits
	// Wrap puts something around every call of a tool, such as a record of it. Nil adds
	// nothing.
	Wrap func(next Handle) Handle
}

// Config is the configuration of one capability after the registry has checked it.
type Config struct {
	// Tools are the keys of the tools that the agent may have, in declared order.
	Tools []string
	// JSON is the configuration without tools, an object.
	JSON json.RawMessage
}

// A ConfigError is a fault of an agent's configuration that only a resolver can see,
// such as a folder that does not exist.
type ConfigError struct {
	// Pointer leads to the fault within [Config.JSON], as an RFC 6901 pointer.
	Pointer string
	// Message says what is wrong, and Hint what to do. Hint may be empty.
	Message, Hint string
}

func (e *ConfigError) Error() string {
	text := e.Message
	if e.Pointer != "" {
		text = e.Pointer + ": " + text
	}
	if e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	return text
}

// skipped is the error of a capability that is left out.
type skipped struct{ why string }

func (s *skipped) Error() string { return "skipped: " + s.why }

// Skip returns the error by which a resolver leaves its capability out, such as for
// want of a program that it needs. why is shown to the operator.
func Skip(why string) error { return &skipped{why} }

// Skipf is [Skip] with a format.
func Skipf(format string, args ...any) error { return Skip(fmt.Sprintf(format, args...)) }

// skippedFor returns the reason of an error that Skip made.
func skippedFor(err error) (why string, ok bool) {
	var s *skipped
	if !errors.As(err, &s) {
		return "", false
	}
	return s.why, true
}
