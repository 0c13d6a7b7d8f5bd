package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/call"
	"github.com/agentd/agentd/rpc"
)

// requestCommand returns `agentd request`. The payload is optional: without one the
// call has no arguments.
func (a *app) requestCommand() *cobra.Command {
	var c call.Call
	cmd := &cobra.Command{
		Use:   "request <agent://id> <capability> [json | @file | -]",
		Short: "Call a capability through a running agent, and print the result as JSON",
		Long: "Call a capability of a peer, through a running agent, and print the result:\n" +
			"{status, correlationId, traceId, latencyMs, executionTimeMs?, costEstimate?, response?,\n" +
			"schemaSide?, violations?, error?}.\n\n" +
			"The exit status is 0 when the status is ok, and 4 when the call was made and ended otherwise.\n" +
			"The calling agent is --as, or the only one that runs. Inside a skill it is the skill's own agent,\n" +
			"and the call is part of the one that the skill serves.\n\n" +
			"With --mode async the request is left with the broker, if the capability says `delivery: durable`:\n" +
			"the result says `queued`, and `agentd await <correlation-id>` fetches the answer. For an agent of\n" +
			"another system the calling agent keeps the answer instead, as long as it runs.",
		Example: "  agentd request agent://pr-reviewer review-pr @pr.json\n" +
			"  echo '{\"query\":\"secrets\"}' | agentd request --as concierge librarian search-notes -",
		Args: arguments(2, "agent", "capability", "payload"),
		RunE: a.do(func(ctx context.Context, args []string) error {
			c.To, c.Capability = args[0], args[1]
			if len(args) == 3 {
				c.Payload = &args[2]
			}
			return call.Request(ctx, &a.Env, c)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&c.Caller.Agent, "as", "", "id of the agent that calls (default: the only one that runs)")
	f.StringVar(&c.Caller.Socket, "socket", "", "control socket of the agent that calls (default: $AGENTD_SOCKET)")
	f.StringVar(&c.Mode, "mode", string(rpc.ModeSync), "sync, async or fire-and-forget")
	f.StringVar(&c.IdempotencyKey, "idempotency-key", "", "calls with the same key are served once")
	f.StringVar(&c.Session, "session", "", "session id for the audit records")
	f.StringVar(&c.Tenant, "tenant", "", "tenant that the call is for (default: none; inside a skill, that of the call that it serves)")
	f.StringVar(&c.Traceparent, "traceparent", "", "W3C trace context that the call continues (default: $TRACEPARENT)")
	f.DurationVar(&c.Timeout, "timeout", 0, "how long to wait for all attempts together, 1ms to 10m (default: the capability's timeoutMs, then 30s, for each attempt)")
	f.DurationVar(&c.IdleTimeout, "idle-timeout", 0, "end the call when neither progress nor the reply arrives for this long (default: never)")
	f.BoolVar(&c.Progress, "progress", false, "print the skill's progress to standard error, one event a line")
	return cmd
}

// awaitCommand returns `agentd await`. It may run on another host than the request
// did: the broker has what it needs.
func (a *app) awaitCommand() *cobra.Command {
	var caller cli.Caller
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "await <correlation-id>",
		Short: "Wait for the answer to an asynchronous call, and print the result as JSON",
		Long: "Wait for the answer to a call that `agentd request --mode async` has made, and print the result\n" +
			"as that command does. The answer is kept for a day, and may be fetched more than once, by any\n" +
			"process of the calling agent.\n\n" +
			"The exit status is 0 when the status is ok, and 4 when the call ended otherwise, or has not ended yet.",
		Example: "  id=$(agentd request --mode async indexer reindex @job.json -o json | jq -r .correlationId)\n" +
			"  agentd await $id --timeout 10m",
		Args: arguments(1, "correlation-id"),
		RunE: a.do(func(ctx context.Context, args []string) error {
			return call.Await(ctx, &a.Env, caller, args[0], timeout)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&caller.Agent, "as", "", "id of the agent that made the call (default: the only one that runs)")
	f.StringVar(&caller.Socket, "socket", "", "control socket of the agent that made the call (default: $AGENTD_SOCKET)")
	f.DurationVar(&timeout, "timeout", 30*time.Second, "how long to wait, 1ms to 1h")
	return cmd
}

// progressCommand returns `agentd progress`, for skills in languages without an
// SDK.
func (a *app) progressCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "progress <json | @file | ->",
		Short: "Inside a skill: report progress to the caller",
		Long: "Inside a skill: report the progress of the running call to its caller, as any JSON value of at most 64 KiB.\n" +
			"The capability must have `progress: true`. It is no error when the caller does not listen.",
		Example: "  agentd progress '{\"done\":3,\"of\":10}'",
		Args:    arguments(1, "json"),
		RunE: a.do(func(ctx context.Context, args []string) error {
			return call.Progress(ctx, &a.Env, args[0])
		}),
	}
}
