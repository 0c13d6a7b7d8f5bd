package sdk

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// Names of the environment variables that agentd sets for a process skill.
const (
	EnvSocket     = "AGENTD_SOCKET"
	EnvCall       = "AGENTD_CALL"
	EnvDeadline   = "AGENTD_DEADLINE"
	EnvFleetRoot  = "AGENTD_FLEET_ROOT"
	EnvAgent      = "AGENTD_AGENT"
	EnvCapability = "AGENTD_CAPABILITY"
)

// An Environment describes the running call to a process skill. A field is
// empty if its variable is.
type Environment struct {
	// Socket is the path of the Unix socket that serves the control API ([EnvSocket]).
	Socket string
	// Call is the opaque token of the running invocation ([EnvCall]).
	Call string
	// Deadline is when the caller stops waiting ([EnvDeadline]). Zero means none.
	Deadline time.Time
	// FleetRoot is the absolute path of the folder that holds fleet.yaml ([EnvFleetRoot]).
	FleetRoot string
	// Agent is the address of the agent that serves the call ([EnvAgent]).
	Agent string
	// Capability is the name of the capability that was called ([EnvCapability]).
	Capability string
}

// ReadEnvironment reads the variables of [Environment] through getenv,
// usually [os.Getenv]. The error names a variable that cannot be understood.
func ReadEnvironment(getenv func(string) string) (Environment, error) {
	env := Environment{
		Socket:     getenv(EnvSocket),
		Call:       getenv(EnvCall),
		FleetRoot:  getenv(EnvFleetRoot),
		Agent:      getenv(EnvAgent),
		Capability: getenv(EnvCapability),
	}
	if text := getenv(EnvDeadline); text != "" {
		ms, err := strconv.ParseInt(text, 10, 64)
		if err != nil || ms <= 0 {
			return Environment{}, fmt.Errorf("sdk: %s=%q is not a positive number of epoch milliseconds", EnvDeadline, text)
		}
		env.Deadline = time.UnixMilli(ms)
	}
	return env, nil
}

type environmentKey struct{}

// WithEnvironment returns a context in which [RequestAgent] and
// [EnvironmentFrom] find env. [Main] and [Run] do this for their function;
// call it yourself to use RequestAgent in a program that is no skill.
func WithEnvironment(ctx context.Context, env Environment) context.Context {
	return context.WithValue(ctx, environmentKey{}, env)
}

// EnvironmentFrom returns the environment that ctx carries, or the zero
// Environment where it carries none.
func EnvironmentFrom(ctx context.Context) Environment {
	env, _ := ctx.Value(environmentKey{}).(Environment)
	return env
}
