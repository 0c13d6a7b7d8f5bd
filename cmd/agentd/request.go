package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/rpc"
)

// requestFlags are the flags of `agentd request`.
type requestFlags struct {
	as, socket, mode, key, session string
	timeout, idle                  time.Duration
	progress                       bool
}

func (a *app) requestCommand() *cobra.Command {
	var flags requestFlags
	cmd := &cobra.Command{
		Use:   "request <agent://id> <capability> [json | @file | -]",
		Short: "Call a capability through a running agent, and print the result as JSON",
		Long: "Call a capability of a peer, through the control socket of a running agent, and print\n" +
			"the result: {status, correlationId, latencyMs, response?, schemaSide?, violations?, error?}.\n\n" +
			"The exit status is 0 when the status is ok, and 4 when the call was made and ended otherwise.\n" +
			"The calling agent is --as, or the only one that runs. Inside a skill it is the skill's own agent,\n" +
			"and the call is part of the one that the skill serves.\n\n" +
			"With --mode async the request is left with the broker, if the capability says `delivery: durable`:\n" +
			"the result says `queued`, and `agentd await <correlation-id>` fetches the answer.",
		Example: "  agentd request agent://pr-reviewer review-pr @pr.json\n" +
			"  echo '{\"query\":\"secrets\"}' | agentd request --as concierge librarian search-notes -",
		Args: cobra.RangeArgs(2, 3),
		RunE: a.do(func(ctx context.Context, args []string) error { return a.request(ctx, args, flags) }),
	}
	f := cmd.Flags()
	f.StringVar(&flags.as, "as", "", "id of the agent that calls (default: the only one that runs)")
	f.StringVar(&flags.socket, "socket", "", "control socket of the agent that calls (default: $AGENTD_SOCKET)")
	f.StringVar(&flags.mode, "mode", string(rpc.ModeSync), "sync, async or fire-and-forget")
	f.StringVar(&flags.key, "idempotency-key", "", "makes a repeated call one call")
	f.StringVar(&flags.session, "session", "", "session id for the audit records")
	f.DurationVar(&flags.timeout, "timeout", 0, "how long to wait, 1ms to 10m (default: the capability's timeoutMs, then 30s)")
	f.DurationVar(&flags.idle, "idle-timeout", 0, "end the call when neither progress nor the reply has come for so long (default: never)")
	f.BoolVar(&flags.progress, "progress", false, "print the skill's progress to standard error, a line each")
	return cmd
}

func (a *app) request(ctx context.Context, args []string, flags requestFlags) error {
	to := args[0]
	if !strings.Contains(to, "://") {
		to = string(envelope.AddressOf(to))
	}
	payload := json.RawMessage("null")
	if len(args) == 3 {
		var err error
		if payload, err = a.payload(args[2]); err != nil {
			return err
		}
	}
	socket, err := a.findSocket(ctx, flags)
	if err != nil {
		return err
	}
	client := control.NewClient(socket)
	defer client.Close()
	request := rpc.Request{
		To: envelope.Address(to), Capability: args[1], Payload: payload, Timeout: flags.timeout, IdleTimeout: flags.idle,
		Mode: rpc.Mode(flags.mode), IdempotencyKey: flags.key, SessionID: flags.session,
	}
	if flags.progress {
		request.OnProgress = a.sayProgress
	}
	result, err := client.RequestAgent(ctx, request, a.getenv("AGENTD_CALL"))
	if err != nil {
		return err
	}
	return a.writeResult(result)
}

// payload reads the third argument of `agentd request`.
func (a *app) payload(arg string) (json.RawMessage, error) {
	var data []byte
	var err error
	name := "the payload"
	switch {
	case arg == "-":
		name = "standard input"
		data, err = readBounded(a.stdin)
	case strings.HasPrefix(arg, "@"):
		name = arg[1:]
		var file *os.File
		if file, err = os.Open(name); err == nil {
			data, err = readBounded(file)
			err = errors.Join(err, file.Close())
		}
	default:
		data = []byte(arg)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if !json.Valid(data) {
		return nil, fmt.Errorf("%s is not JSON; give it as an argument in quotes, as @file, or as - for standard input", name)
	}
	return data, nil
}

// readBounded reads what the control API would take at most.
func readBounded(r io.Reader) ([]byte, error) {
	const most = control.MaxRequestBytes - 64<<10 // room for what is around the payload
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && len(data) > most {
		return nil, fmt.Errorf("larger than %d MiB, which is more than any agent takes", most>>20)
	}
	return data, err
}

// findSocket decides which running agent makes the call.
func (a *app) findSocket(ctx context.Context, flags requestFlags) (string, error) {
	if flags.socket != "" {
		return flags.socket, nil
	}
	if own := a.getenv("AGENTD_SOCKET"); own != "" && flags.as == "" {
		return own, nil
	}
	f, err := a.loadFleet(fleet.LoadOptions{InspectOnly: true})
	if err != nil {
		return "", err
	}
	paths, err := a.paths(f)
	if err != nil {
		return "", err
	}
	if flags.as != "" {
		return paths.Socket(flags.as), nil
	}
	running, err := paths.Running(ctx)
	if err != nil {
		return "", err
	}
	switch len(running) {
	case 0:
		return "", errors.New("no agent of this fleet is running: start it with `agentd fleet run` in another terminal")
	case 1:
		return paths.Socket(running[0]), nil
	}
	return "", usage("several agents are running: say who calls with --as %s", strings.Join(running, ", --as "))
}
