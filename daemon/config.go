package daemon

import (
	"fmt"
	"log/slog"

	"github.com/agentd/agentd/daemon/tracing"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/descendants"
	"github.com/agentd/agentd/internal/otlp"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/skill/sandbox"
	"github.com/agentd/agentd/transport/memory"
	"github.com/agentd/agentd/transport/nats"
)

// A Config describes which agent to run, and where.
type Config struct {
	// Fleet is the loaded fleet. Required.
	Fleet *fleet.Fleet
	// Paths are where state and sockets go. Required.
	Paths Paths
	// Bus carries the memory transport between the agents of this process. Nil means
	// that the agent is alone in its process, so nobody can reach it by memory.
	Bus *memory.Bus
	// NATS is how to reach NATS, where the agent's files name it. Its servers take
	// precedence over those of the files.
	NATS nats.Options
	// AwaitBroker says that Start waits for a broker that cannot be reached, for as long as its
	// context allows. Without it such a start fails. Rejected credentials always end it.
	AwaitBroker bool
	// Handlers run skills as Go functions, by skill name. They take precedence over
	// the processes of agent.yaml.
	Handlers map[string]rpc.Handler
	// Resolvers are capabilities that agents may list in agent.yaml besides those that
	// agentd ships.
	Resolvers []registry.Resolver
	// Version is the version of agentd, for the audit log.
	Version string
	// Logger is required; it gets the agent's id as an attribute.
	Logger *slog.Logger
	// LogCalls writes one line a call to Logger, at each end.
	LogCalls bool
	// Traces says where the spans of calls go. Nil makes none.
	Traces *tracing.Config
	// LogsLost is how many lines never reached the collector that Logger sends them to. Nil is
	// a Logger without one.
	LogsLost func() otlp.Dropped
	// Observer learns of calls and violations as they happen. Nil means that nobody watches.
	Observer Observer
	// Listen is where the agent serves its health and its metrics, <host>:<port>, whatever
	// agent.yaml says; "" leaves it to that. A fleet serves those of all members there, on a
	// loopback address. Profiles adds profiles of the process.
	Listen   string
	Profiles bool
	// OwnsProcess says that the process consists of agentd alone. Then it adopts its
	// orphaned descendants and ends those that no running call has, and no descendant is
	// taken for an operator. A program that runs agents beside other things leaves it
	// false: it may have children of its own.
	OwnsProcess bool
	// Confines says that the program calls Main of package skill/sandbox where IsHelper
	// says so; an agent with such skills does not start if it does not. Then programs of
	// skills are confined. Without it they may do whatever this process may, and the agent's
	// status says so.
	Confines bool

	// All are of the process: whether several agents share it, and what they share, which is nil
	// before the first one is made.
	shared bool
	family *descendants.Family
	starts *sandbox.Starts
}

// An UnknownAgentError reports that a fleet has no such member.
type UnknownAgentError struct {
	// ID is the id that was asked for.
	ID string
	// Members are the ids that the fleet has.
	Members []string
}

func (e *UnknownAgentError) Error() string {
	return fmt.Sprintf("the fleet has no agent %q; it has %v", e.ID, e.Members)
}

// A MemoryOnlyError reports that an agent was to run alone in its process although
// it accepts requests by the memory transport only, so that no other process could
// call it.
type MemoryOnlyError struct {
	// ID is the agent's.
	ID string
}

func (e *MemoryOnlyError) Error() string {
	return fmt.Sprintf("agent %q takes requests by the memory transport only, which does not leave its process: "+
		"no other process could call it. Start the whole fleet in one process with `agentd fleet run`, "+
		"or give the agent a transport of kind nats in its capabilities.yaml (or layers.capabilities of its agent.yaml) and in rpc-peers.yaml", e.ID)
}
