package sdk

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
)

// A ProgressEvent is one event that a peer's skill publishes while it runs.
type ProgressEvent struct {
	// Seq counts the events of one attempt, from 1. A gap means that events
	// were lost.
	Seq int `json:"seq"`
	// Attempt counts the requests that the call has made, from 1.
	Attempt int `json:"attempt"`
	// Value is one JSON value.
	Value json.RawMessage `json:"value"`
}

// Progress publishes an event to the caller of the running call: any value
// that encodes to at most 64 KiB of JSON. The environment comes from ctx, as
// [Main] sets it, or else from the process.
//
// The result wanted is false if the capability does not declare `progress:
// true` or the caller did not ask for progress; the skill may then stop
// publishing. An error means that nothing was published: [ErrNoDaemon], a
// [*DaemonError], a context error, or a broken connection. Each event costs a
// connection to agentd, but for a worker. Progress is safe for concurrent use.
func Progress(ctx context.Context, value any) (wanted bool, err error) {
	env, ok := ctx.Value(environmentKey{}).(Environment)
	if !ok {
		if env, err = ReadEnvironment(os.Getenv); err != nil {
			return false, err
		}
	}
	call := workerCallFrom(ctx)
	if call == nil && env.URL == "" && env.Socket == "" {
		return false, ErrNoDaemon
	}
	body, err := marshal(value)
	if err != nil {
		return false, fmt.Errorf("sdk: encode the progress: %w", err)
	}
	if call != nil {
		return call.progress(ctx, body)
	}
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	reply, err := post(ctx, env, "/v1/agent/progress", body)
	if err != nil {
		return false, fmt.Errorf("sdk: report progress: %w", err)
	}
	var answer struct {
		Wanted bool `json:"wanted"`
	}
	if err := json.Unmarshal(reply, &answer); err != nil {
		return false, fmt.Errorf("sdk: agentd's reply to progress cannot be read: %w", err)
	}
	return answer.Wanted, nil
}

// ask makes a call, and returns its result as JSON. A non-nil report gets its progress.
func ask(ctx context.Context, env Environment, body []byte, report func(ProgressEvent)) ([]byte, error) {
	if report == nil {
		return post(ctx, env, "/v1/request", body)
	}
	resp, err := open(ctx, env, http.MethodPost, "/v1/request", body, "application/x-ndjson")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for {
		text, err := readLine(lines)
		if err != nil {
			return nil, fmt.Errorf("agentd's reply ended before its result: %w", err)
		}
		var line struct {
			Progress *ProgressEvent  `json:"progress"`
			Result   json.RawMessage `json:"result"`
		}
		if err := json.Unmarshal(text, &line); err != nil {
			return nil, fmt.Errorf("agentd's reply is not a line of JSON: %w", err)
		}
		switch {
		case line.Result != nil:
			return line.Result, nil
		case line.Progress != nil:
			report(*line.Progress)
		}
	}
}

// readLine reads one bounded line.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxReplyBytes {
			return nil, fmt.Errorf("a line is larger than %d bytes", maxReplyBytes)
		}
		switch {
		case err == nil:
			return line, nil
		case errors.Is(err, io.EOF):
			return nil, io.ErrUnexpectedEOF
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}
