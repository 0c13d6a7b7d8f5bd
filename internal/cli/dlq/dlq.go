package dlq

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
)

// A letter is a dead letter of one agent.
type letter struct {
	Agent string `json:"agent"`
	control.Letter
}

// List prints the dead letters of the named agent, or of all that run here,
// without their bodies. Of several agents, those that have no durable
// capabilities are passed over; naming one of them is an error.
func List(ctx context.Context, env *cli.Env, agent string) error {
	var all []letter
	err := env.EachRunning(ctx, agent, func(id string, client *control.Client) error {
		letters, err := client.Letters(ctx)
		// The agent answered, so it runs; it refuses because it has no durable
		// capabilities. Asked for every agent, the user does not want that as an
		// error.
		if _, notDurable := errors.AsType[*control.RefusedError](err); notDurable && agent == "" {
			return nil
		}
		for _, l := range letters {
			all = append(all, letter{id, l})
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
	for i, l := range all {
		rows[i] = []string{
			strconv.FormatUint(l.Number, 10), l.Agent, string(l.From), l.Capability, time.Since(l.Time).Round(time.Second).String(),
			strconv.Itoa(l.Attempts), strconv.Itoa(l.Bytes), l.Reason,
		}
	}
	return env.WriteTable([]string{"NUMBER", "AGENT", "FROM", "CAPABILITY", "AGE", "ATTEMPTS", "BYTES", "REASON"}, rows)
}

// Show prints one dead letter of an agent, with its body.
func Show(ctx context.Context, env *cli.Env, agent, number string) error {
	numbers, err := parseNumbers([]string{number})
	if err != nil {
		return err
	}
	return env.EachRunning(ctx, agent, func(_ string, client *control.Client) error {
		l, err := client.Letter(ctx, numbers[0])
		if err != nil {
			return err
		}
		return env.WriteJSON(l)
	})
}

// Redrive puts dead letters of an agent back into its queue.
func Redrive(ctx context.Context, env *cli.Env, agent string, numbers []string) error {
	return change(ctx, env, agent, numbers, "put back", (*control.Client).Redrive)
}

// Drop removes dead letters of an agent for good.
func Drop(ctx context.Context, env *cli.Env, agent string, numbers []string) error {
	return change(ctx, env, agent, numbers, "dropped", (*control.Client).Drop)
}

// change applies one to each dead letter. It goes on after an error, and prints
// the letters that were changed: the others are still there to try again.
func change(ctx context.Context, env *cli.Env, agent string, numbers []string, done string,
	one func(*control.Client, context.Context, uint64) (control.Letter, error),
) error {
	parsed, err := parseNumbers(numbers)
	if err != nil {
		return err
	}
	var changed []letter
	err = env.EachRunning(ctx, agent, func(id string, client *control.Client) error {
		var errs []error
		for _, number := range parsed {
			l, err := one(client, ctx, number)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			changed = append(changed, letter{id, l})
		}
		return errors.Join(errs...)
	})
	if env.Format != output.Table {
		return errors.Join(err, cli.WriteList(env, changed))
	}
	for _, l := range changed {
		if _, werr := fmt.Fprintf(env.Stdout, "%d %s: %s of %s\n", l.Number, done, output.Printable(l.Capability), l.From); werr != nil {
			return errors.Join(err, werr)
		}
	}
	return err
}

// parseNumbers converts every argument before the first letter changes, so that a
// typing error in the last one does not leave half of the work done.
func parseNumbers(args []string) ([]uint64, error) {
	numbers := make([]uint64, len(args))
	for i, arg := range args {
		var err error
		if numbers[i], err = strconv.ParseUint(arg, 10, 64); err != nil {
			return nil, cli.Usage("%q is no number of a dead letter: `agentd dlq list` shows them", arg)
		}
	}
	return numbers, nil
}
