package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
)

// Progress tells the caller of the running call how far the skill is, by any
// value that encodes to at most 64 KiB of JSON. The environment comes from ctx,
// as [Main] sets it, or else from the process. The capability must say
// `progress: true`; wanted is false where it does not, and where the caller does not
// ask: a skill may then spare itself more. An error means that nothing was told:
// [ErrNoDaemon], a [*DaemonError], a context error, or a broken connection. It
// costs a connection to agentd, and is safe for concurrent use.
func Progress(ctx context.Context, value any) (wanted bool, err error) {
	env, ok := ctx.Value(environmentKey{}).(Environment)
	if !ok {
		if env, err = ReadEnvironment(os.Getenv); err != nil {
			return false, err
		}
	}
	if env.Socket == "" {
		return false, ErrNoDaemon
	}
	body, err := marshal(value)
	if err != nil {
		return false, fmt.Errorf("sdk: encode the progress: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	reply, err := post(ctx, env, "/v1/agent/progress", body)
	if err != nil {
		return false, fmt.Errorf("sdk: tell progress: %w", err)
	}
	var answer struct {
		Wanted bool `json:"wanted"`
	}
	if err := json.Unmarshal(reply, &answer); err != nil {
		return false, fmt.Errorf("sdk: agentd's reply to progress cannot be read: %w", err)
	}
	return answer.Wanted, nil
}
