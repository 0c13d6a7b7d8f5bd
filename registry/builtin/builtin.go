package builtin

import (
	"cmp"

	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/audio"
	"github.com/agentd/agentd/registry/database"
	"github.com/agentd/agentd/registry/external"
	"github.com/agentd/agentd/registry/files"
	"github.com/agentd/agentd/registry/history"
	"github.com/agentd/agentd/registry/mail"
	"github.com/agentd/agentd/registry/memory"
	"github.com/agentd/agentd/registry/notify"
	"github.com/agentd/agentd/registry/peers"
	"github.com/agentd/agentd/registry/tasks"
	"github.com/agentd/agentd/registry/web"
)

// Deps are the parts of a running agent that its capabilities need. The zero value is
// enough to list them.
type Deps struct {
	// History reads the agent's access log.
	History history.Source
	// Peers are the agents that it may call, and Caller makes the calls.
	Peers  []peers.Peer
	Caller peers.Caller
	// External is the capability mcp; nil stands for one that confines no program.
	External *external.Resolver
}

// All returns the capabilities that agentd ships, for one agent.
func All(d Deps) []registry.Resolver {
	return []registry.Resolver{
		audio.Resolver{},
		database.Resolver{},
		cmp.Or(d.External, external.New(nil)),
		files.Resolver{},
		history.New(d.History),
		mail.Resolver{},
		memory.New(nil),
		notify.Resolver{},
		peers.New(d.Peers, d.Caller),
		tasks.New(nil),
		web.Resolver{},
	}
}
