package sdk

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// Names of the environment variables that agentd sets for a process skill.
const (
	EnvURL            = "AGENTD_URL"
	EnvSocket         = "AGENTD_SOCKET"
	EnvCall           = "AGENTD_CALL"
	EnvDeadline       = "AGENTD_DEADLINE"
	EnvFleetRoot      = "AGENTD_FLEET_ROOT"
	EnvAgent          = "AGENTD_AGENT"
	EnvCapability     = "AGENTD_CAPABILITY"
	EnvCaller         = "AGENTD_CALLER"
	EnvCallerProven   = "AGENTD_CALLER_PROVEN"
	EnvMessageID      = "AGENTD_MESSAGE_ID"
	EnvCorrelationID  = "AGENTD_CORRELATION_ID"
	EnvSessionID      = "AGENTD_SESSION_ID"
	EnvTenantID       = "AGENTD_TENANT_ID"
	EnvIdempotencyKey = "AGENTD_IDEMPOTENCY_KEY"
	EnvTraceparent    = "AGENTD_TRACEPARENT"
	EnvTracestate     = "TRACESTATE"
	EnvHops           = "AGENTD_HOPS"
)

// An Environment describes the running call to a process skill. A field is
// empty if its variable is.
type Environment struct {
	// URL is where the skill's agent serves the API for its skills ([EnvURL]).
	URL string
	// Socket is the path of the Unix socket that serves the control API ([EnvSocket]), for
	// programs that are no skill. It counts where URL is empty.
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
	// Caller is the address of the agent that calls ([EnvCaller]).
	Caller string
	// CallerProven says that the request has proven that it is Caller's
	// ([EnvCallerProven]). Otherwise Caller is the sender's word.
	CallerProven bool
	// MessageID names the request ([EnvMessageID]). Each attempt has its own.
	MessageID string
	// CorrelationID names the call in the logs and audit records of both agents
	// ([EnvCorrelationID]).
	CorrelationID string
	// SessionID is the session of the caller's skill ([EnvSessionID]).
	SessionID string
	// TenantID is the tenant that the call is for ([EnvTenantID]).
	TenantID string
	// IdempotencyKey is what the caller marks repetitions of one call with
	// ([EnvIdempotencyKey]).
	IdempotencyKey string
	// Traceparent is the W3C trace context of the call ([EnvTraceparent]). Nested
	// calls continue it by themselves.
	Traceparent string
	// Tracestate is what vendors of tracing have added to Traceparent ([EnvTracestate]).
	Tracestate string
	// Hops counts the calls that led here, this one included ([EnvHops]). 0 means
	// that nobody said.
	Hops int
}

// ReadEnvironment reads the variables of [Environment] through getenv,
// usually [os.Getenv]. The error names a variable that cannot be understood.
func ReadEnvironment(getenv func(string) string) (Environment, error) {
	env := Environment{
		URL: getenv(EnvURL), Socket: getenv(EnvSocket), Call: getenv(EnvCall), FleetRoot: getenv(EnvFleetRoot),
		Agent: getenv(EnvAgent), Capability: getenv(EnvCapability),
		Caller: getenv(EnvCaller), CallerProven: getenv(EnvCallerProven) == "true",
		MessageID: getenv(EnvMessageID), CorrelationID: getenv(EnvCorrelationID), SessionID: getenv(EnvSessionID),
		TenantID: getenv(EnvTenantID), IdempotencyKey: getenv(EnvIdempotencyKey), Traceparent: getenv(EnvTraceparent), Tracestate: getenv(EnvTracestate),
	}
	if text := getenv(EnvDeadline); text != "" {
		ms, err := strconv.ParseInt(text, 10, 64)
		if err != nil || ms <= 0 {
			return Environment{}, fmt.Errorf("sdk: %s=%q is not a positive number of epoch milliseconds", EnvDeadline, text)
		}
		env.Deadline = time.UnixMilli(ms)
	}
	if text := getenv(EnvHops); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n <= 0 {
			return Environment{}, fmt.Errorf("sdk: %s=%q is not a positive number", EnvHops, text)
		}
		env.Hops = n
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
