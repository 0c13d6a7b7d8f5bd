package registry

import (
	"context"
	"encoding/json"
	"io"
	"strings"

	"github.com/agentd/agentd/action"
	actions "github.com/agentd/agentd/action/builtin"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/builtin"
	"github.com/agentd/agentd/schema"
)

// A listedAction is an action that agentd has, for programs.
type listedAction struct {
	Kind string `json:"kind"` // always "action": the entries of capabilities have none
	action.Action
	// ConfigSchema is the JSON Schema of its configuration.
	ConfigSchema json.RawMessage `json:"configSchema"`
}

// List prints all capabilities that agentd ships, with their tools, and all actions. It
// starts nothing and needs no fleet.
func List(env *cli.Env) error {
	known := registry.New()
	for _, r := range builtin.All(builtin.Deps{}) {
		if err := known.Register(r); err != nil {
			return err
		}
	}
	all := known.KnownCapabilities()
	if env.Format != output.Table {
		entries := make([]any, 0, len(all))
		for _, c := range all {
			entries = append(entries, c)
		}
		for _, d := range actions.All() {
			entries = append(entries, listedAction{"action", d.Action, d.Config})
		}
		return cli.WriteList(env, entries)
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
	if err := env.WriteTable([]string{"CAPABILITY", "TOOL", "NAME"}, rows); err != nil {
		return err
	}
	return writeActions(env)
}

// writeActions prints the actions that agentd has, for people.
func writeActions(env *cli.Env) error {
	var rows [][]string
	for _, d := range actions.All() {
		var takes []string
		if s, err := schema.Compile(d.Config); err == nil {
			for _, p := range s.Root().Properties() {
				takes = append(takes, p.Name)
			}
		}
		rows = append(rows, []string{d.Action.ID, d.Action.Name, strings.Join(d.Action.Permissions, ", "), strings.Join(takes, ", ")})
	}
	if err := env.WriteText(func(w io.Writer) error { _, err := io.WriteString(w, "\n"); return err }); err != nil {
		return err
	}
	return env.WriteTable([]string{"ACTION", "NAME", "NEEDS", "CONFIG"}, rows)
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
	// Refused says why the tool cannot be called at the moment.
	Refused string `json:"refused,omitempty"`
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
					InputSchema: t.InputSchema, OutputSchema: t.OutputSchema, Refused: t.Refused,
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
		switch {
		case t.Tool == "":
			what = "skipped: " + t.Skipped
		case t.Refused != "":
			what = "refused: " + t.Refused
		}
		rows[i] = []string{t.Agent, t.Capability, t.Tool, what}
	}
	return env.WriteTable([]string{"AGENT", "CAPABILITY", "TOOL", ""}, rows)
}
