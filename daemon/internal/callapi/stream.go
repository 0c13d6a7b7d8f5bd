package callapi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/agentd/agentd/rpc"
)

// ndjson is the media type of a stream of JSON values, one per line.
const ndjson = "application/x-ndjson"

// progressWriteTimeout bounds how long a client may take to read one line. A client
// that stops reading would otherwise block the call that it made.
const progressWriteTimeout = 5 * time.Second

// A streamLine is one line of a streamed response, as clients read it: exactly one of the
// two is set.
type streamLine struct {
	Progress *rpc.ProgressEvent `json:"progress,omitempty"`
	Result   *rpc.Result        `json:"result,omitempty"`
}

// A resultLine is the last line, as it is written.
type resultLine struct {
	Result json.Marshaler `json:"result"`
}

// stream makes a call and writes its progress events as they arrive, and finally
// the result. It cancels the call when the client stops reading.
func stream(ctx context.Context, w http.ResponseWriter, caller Caller, request Request) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := http.NewResponseController(w)
	var begin sync.Once
	line := func(l any) {
		begin.Do(func() {
			w.Header().Set("Content-Type", ndjson)
			w.WriteHeader(http.StatusOK)
		})
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		_ = out.SetWriteDeadline(time.Now().Add(progressWriteTimeout)) // where deadlines are not supported, a line may block
		if err := errors.Join(enc.Encode(l), out.Flush()); err != nil {
			cancel(fmt.Errorf("the client does not read: %w", err))
		}
	}
	request.OnProgress = func(e rpc.ProgressEvent) { line(streamLine{Progress: &e}) }
	result, _ := caller.RequestAgent(ctx, request.Request) // the error is in the result
	line(resultLine{request.result(result)})
	_ = out.SetWriteDeadline(time.Time{}) // the connection may carry another request
}

// wantsStream reports whether a request accepts a stream of progress and result.
func wantsStream(r *http.Request) bool {
	for accepted := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		kind, _, _ := strings.Cut(accepted, ";")
		if strings.EqualFold(strings.TrimSpace(kind), ndjson) {
			return true
		}
	}
	return false
}

// maxStreamBytes bounds a streamed response: ten minutes, the longest timeout, of
// progress at the highest rate, and the result.
const maxStreamBytes = maxResponseBytes + 600*rpc.ProgressPerSecond*rpc.MaxProgressBytes

// follow reads a streamed response, and calls report for each progress event.
func follow(body io.Reader, report func(rpc.ProgressEvent)) (*rpc.Result, error) {
	lines := bufio.NewReader(io.LimitReader(body, maxStreamBytes))
	for {
		text, err := lines.ReadBytes('\n')
		if err != nil {
			return nil, fmt.Errorf("control: the response ended before its result: %w", err)
		}
		var l streamLine
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, fmt.Errorf("control: %w", err)
		}
		switch {
		case l.Result != nil:
			return l.Result, nil
		case l.Progress != nil:
			report(*l.Progress)
		}
	}
}
