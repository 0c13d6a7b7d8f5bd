package approvals

import (
	"context"
	"fmt"

	"github.com/agentd/agentd/approval"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
)

// A ShowRequest is one `agentd approvals show`.
type ShowRequest struct {
	// Decision names the call, and what the statement is to say.
	Decision
	// Statement writes nothing but the statement, byte for byte, to be signed elsewhere.
	Statement bool
}

// Show prints one waiting call with its payload and with the statement that a decision
// signs.
func Show(ctx context.Context, env *cli.Env, r ShowRequest) error {
	call, err := find(ctx, env, r.Agent, r.ID)
	if err != nil {
		return err
	}
	text, err := statement(&call, r.Decision)
	switch {
	case err != nil:
		return err
	case r.Statement:
		_, err = env.Stdout.Write(text)
		return err
	case env.Format != output.Table:
		return env.WriteJSON(call)
	}
	fmt.Fprintf(env.Stdout, "%s\nThe payload:\n%s\nA signature of %s is over:\n%s\n", call.summary(), visible(indent(call.PayloadBytes())), approval.Namespace, visible(indent(text)))
	for _, s := range call.Signers {
		fmt.Fprintf(env.Stdout, "who may sign: %s %s\n", s.Name, s.Key)
	}
	return nil
}

// Signers prints who may decide by the files of the fleet, in the form of an
// allowed_signers file.
func Signers(_ context.Context, env *cli.Env, agent string) error {
	f, err := env.LoadFleet(fleet.LoadOptions{InspectOnly: true})
	if err != nil {
		return err
	}
	if _, ok := f.Member(cli.ID(agent)); agent != "" && !ok {
		return cli.Usage("--agent: the fleet %s has no agent %q", f.Name, agent)
	}
	printed := map[string]bool{}
	for _, m := range f.Members {
		if agent != "" && m.ID != cli.ID(agent) {
			continue
		}
		for _, who := range m.Agent.Security.ApproverKeys() {
			if line := who.Line(); !printed[line] { // agents may share them
				printed[line] = true
				fmt.Fprintln(env.Stdout, line)
			}
		}
	}
	return nil
}
