package fleet

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
)

// A closedBreaker is a circuit breaker that has been reset.
type closedBreaker struct {
	Agent string `json:"agent"`
	control.Breaker
}

// ResetBreakers closes the circuit breakers of the named agent, or of all that run here,
// that are open or half-open: those of target, which is a peer (an id or an address), or
// one of its capabilities after a slash, or "" for all. It prints what they were.
func ResetBreakers(ctx context.Context, env *cli.Env, agent, target string) error {
	peer, capability, err := parseTarget(target)
	if err != nil {
		return err
	}
	var all []closedBreaker
	err = env.EachRunning(ctx, agent, func(id string, client *control.Client) error {
		reset, err := client.ResetBreakers(ctx, peer, capability)
		for _, b := range reset {
			all = append(all, closedBreaker{id, b})
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
	for i, b := range all {
		rows[i] = []string{
			b.Agent, string(b.Peer), b.Capability, string(b.State), time.Since(b.Since).Round(time.Second).String(),
			fmt.Sprintf("%d of %d", b.Failed, b.Calls), orDash(b.Cause),
		}
	}
	return env.WriteTable([]string{"AGENT", "PEER", "CAPABILITY", "WAS", "FOR", "FAILED", "CAUSE"}, rows)
}

// parseTarget splits agent://id/capability, id/capability, agent://id or id.
func parseTarget(target string) (peer envelope.Address, capability string, err error) {
	if target == "" {
		return "", "", nil
	}
	id, capability, _ := strings.Cut(strings.TrimPrefix(target, "agent://"), "/")
	peer, err = envelope.ParseAddress("agent://" + id)
	if err != nil {
		return "", "", cli.Usage("%v", err)
	}
	return peer, capability, nil
}
