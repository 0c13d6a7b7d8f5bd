package registry

import (
	"context"
	"encoding/json"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/builtin"
)

// List prints all capabilities that agentd ships, with their tools. It starts nothing
// and needs no fleet.
func List(env *cli.Env) error {
	known := registry.New()
	for _, r := range builtin.All(builtin.Deps{}) {
		if err := known.Register(r); err != nil {
			return err
		}
	}
	all := known.KnownCapabilities()
	if env.Format != output.Table {
		return cli.WriteList(env, all)
	}
	var rows [][]string
	for _, c := range all {
		for _, t := range c.Tools {
			rows = append(rows, []string{c.Key, t.Key, t.Name})
		}
		if c.PerAgent {
			rows = append(rows, []string{c.Key, "those of the agent", "see `agentd registry tools`"})
		}
	}
	return env.WriteTable([]string{"CAPABILITY", "TOOL", "NAME"}, rows)
}

// A tool is one that a running agent has, or a capability that gives it none.
type tool struct {
	Agent      string `json:"agent"`
	Capability string `json:"capability"`
	Tool       string `json:"tool,omitempty"`
	// Skipped says why the agent has no tool of the capability.
	Skipped      string          `json:"skipped,omitempty"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
}

// Tools prints what running agents really have: the named one, or all that run here.
func Tools(ctx context.Context, env *cli.Env, agent string) error {
	var all []tool
	err := env.EachRunning(ctx, agent, func(id string, client *control.Client) error {
		sets, err := client.Tools(ctx)
		for _, c := range sets {
			if len(c.Tools) == 0 {
				all = append(all, tool{Agent: id, Capability: c.Key, Skipped: c.Skipped})
			}
			for _, t := range c.Tools {
				all = append(all, tool{
					Agent: id, Capability: c.Key, Tool: t.Name, Title: t.Title, Description: t.Description,
					InputSchema: t.InputSchema, OutputSchema: t.OutputSchema,
				})
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	if env.Format != output.Table {
		return cli.WriteList(env, all)
	}
	rows := make([][]string, len(all))
	for i, t := range all {
		what := t.Title
		if t.Tool == "" {
			what = "skipped: " + t.Skipped
		}
		rows[i] = []string{t.Agent, t.Capability, t.Tool, what}
	}
	return env.WriteTable([]string{"AGENT", "CAPABILITY", "TOOL", ""}, rows)
}
