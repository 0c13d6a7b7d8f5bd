package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"
)

// AwaitResult waits for the outcome of a call of [ModeAsync] of this agent, made by this skill or
// by another one, at most for timeout, from 1 ms to an hour. When that has passed, the result has
// [StatusTimeout], and may be asked for again. Errors are those of [RequestAgent].
func AwaitResult(ctx context.Context, correlationID string, timeout time.Duration) (*Result, error) {
	env, ok := ctx.Value(environmentKey{}).(Environment)
	if !ok {
		var err error
		if env, err = ReadEnvironment(os.Getenv); err != nil {
			return nil, err
		}
	}
	if env.URL == "" && env.Socket == "" {
		return nil, ErrNoDaemon
	}
	const grace = 15 * time.Second // for the reply
	ctx, cancel := context.WithTimeout(ctx, timeout+grace)
	defer cancel()
	path := fmt.Sprintf("/v1/results/%s?timeoutMs=%d", url.PathEscape(correlationID), wholeMs(timeout))
	resp, err := open(ctx, env, http.MethodGet, path, nil, "application/json")
	if err != nil {
		return nil, fmt.Errorf("sdk: await %s: %w", correlationID, err)
	}
	defer resp.Body.Close()
	reply, err := readReply(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("sdk: await %s: %w", correlationID, err)
	}
	result := &Result{}
	if err := json.Unmarshal(reply, result); err != nil {
		return nil, fmt.Errorf("sdk: agentd's reply about %s is not a result: %w", correlationID, err)
	}
	if result.Status == "" {
		return nil, fmt.Errorf("sdk: agentd's reply about %s has no status", correlationID)
	}
	return result, nil
}
