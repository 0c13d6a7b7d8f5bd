package sdk

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/agentd/agentd/skill/internal/wire"
)

// EnvWorker is set for a program that agentd runs as a worker. [Main] takes it out of the
// environment, which the programs get that it starts.
const EnvWorker = wire.EnvWorker

// An Option changes how [Main] and [Serve] run a skill.
type Option func(*options)

type options struct{ concurrency int }

// Concurrent says that a worker may be given n calls at once: the function is then called by
// several goroutines. Without it there is one call at a time, as in a process of its own. It
// means nothing to a program that is started for each call.
func Concurrent(n int) Option { return func(o *options) { o.concurrency = n } }

// A handler serves one call: payload in, answer out.
type handler func(ctx context.Context, payload []byte) ([]byte, error)

// RunWorker is [Main] without the process, for a program that is a worker: it serves the calls
// that come on stdin, as docs/worker-protocol.md specifies, until that ends or ctx does. It
// returns the exit code. What it does with payloads, results and errors of fn is what [Run]
// does.
func RunWorker[In, Out any](
	ctx context.Context,
	stdin io.Reader, stdout, stderr io.Writer,
	fn func(ctx context.Context, in In) (Out, error),
	opts ...Option,
) int {
	return newWorker(stdout, stderr, nil, handle(fn), opts).run(ctx, stdin)
}

// A worker is this end of the protocol.
type worker struct {
	handle       handler
	capabilities []string // nil serves every one
	options      options
	stderr       io.Writer

	stdout  io.Writer // of one goroutine at a time
	output  sync.Mutex
	writing bool   // a goroutine uses stdout; guarded by output
	pending []byte // what is to be written; guarded by output

	at wire.InitializeParams // set by initialize, before there are calls

	mu      sync.Mutex
	calls   map[string]context.CancelCauseFunc // by the id of the invocation; guarded by mu
	nested  map[string]*nested                 // by the id of the request; guarded by mu
	lastID  uint64                             // of a request; guarded by mu
	running sync.WaitGroup
}

func newWorker(stdout, stderr io.Writer, capabilities []string, h handler, opts []Option) *worker {
	w := &worker{handle: h, capabilities: capabilities, stdout: stdout, stderr: &lockedWriter{to: stderr}, options: options{concurrency: 1}}
	w.calls, w.nested = map[string]context.CancelCauseFunc{}, map[string]*nested{}
	for _, o := range opts {
		o(&w.options)
	}
	return w
}

// errEnded is the cause with which calls end that run when agentd has gone.
var errEnded = errors.New("sdk: the worker ends")

// run serves until stdin or ctx ends, and then waits for the calls that run.
func (w *worker) run(ctx context.Context, stdin io.Reader) int {
	calls, cancel := context.WithCancelCause(ctx)
	read := make(chan error, 1)
	go func() { read <- w.read(calls, stdin) }() // after ctx it ends with the process
	var err error
	select {
	case err = <-read:
	case <-ctx.Done():
	}
	cancel(errEnded)
	w.running.Wait()
	if err != nil {
		fmt.Fprintln(w.stderr, "worker failed:", err)
		return ExitFailed
	}
	return ExitOK
}

// read takes messages until there are no more.
func (w *worker) read(ctx context.Context, stdin io.Reader) error {
	const buffer = 64 << 10
	for lines := bufio.NewReaderSize(stdin, buffer); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read standard input: %w", err)
		}
		m, err := wire.Decode(line)
		if err != nil {
			return fmt.Errorf("agentd has written what is no message: %w", err)
		}
		w.take(ctx, &m)
	}
}

// take does what a message asks for.
func (w *worker) take(ctx context.Context, m *wire.Message) {
	switch {
	case m.Method == "":
		w.answered(m)
	case m.ID == nil:
		w.notified(m)
	case m.Method == wire.Invoke:
		w.invoke(ctx, m)
	case m.Method == wire.Initialize:
		w.initialize(m)
	case m.Method == wire.Ping:
		w.respond(m.ID, struct{}{})
	default:
		w.refuse(m.ID, &wire.Error{Code: wire.MethodNotFound, Message: "there is no method " + strconv.Quote(m.Method)})
	}
}

func (w *worker) initialize(m *wire.Message) {
	if err := json.Unmarshal(m.Params, &w.at); err != nil || !slices.Contains(w.at.ProtocolVersions, wire.Version) {
		w.refuse(m.ID, &wire.Error{Code: wire.InvalidParams, Message: fmt.Sprintf("this worker speaks version %d of the protocol", wire.Version)})
		return
	}
	w.respond(m.ID, wire.InitializeResult{ProtocolVersion: wire.Version, Capabilities: w.capabilities, Concurrency: w.options.concurrency})
}

// notified takes a notification. Those that it does not know are passed over.
func (w *worker) notified(m *wire.Message) {
	switch m.Method {
	case wire.Cancel:
		var p wire.CancelParams
		if json.Unmarshal(m.Params, &p) != nil {
			return
		}
		w.mu.Lock()
		cancel := w.calls[string(p.ID)]
		w.mu.Unlock()
		if cancel != nil {
			cancel(context.Canceled)
		}
	case wire.Progress:
		var p wire.ProgressParams
		if json.Unmarshal(m.Params, &p) != nil {
			return
		}
		w.mu.Lock()
		n := w.nested[string(p.ID)]
		w.mu.Unlock()
		if n != nil {
			n.report(ProgressEvent{Seq: p.Seq, Attempt: p.Attempt, Value: p.Value})
		}
	}
}

// invoke serves a call.
func (w *worker) invoke(ctx context.Context, m *wire.Message) {
	p, err := wire.ReadInvoke(m.Params)
	if err != nil {
		w.refuse(m.ID, &wire.Error{Code: wire.InvalidParams, Message: err.Error()})
		return
	}
	if w.capabilities != nil && !slices.Contains(w.capabilities, p.Capability) {
		w.refuse(m.ID, &wire.Error{Code: wire.InvalidParams, Message: fmt.Sprintf("nothing is registered for the capability %q", p.Capability)})
		return
	}
	id := string(m.ID)
	ctx, cancel := context.WithCancelCause(context.WithValue(ctx, workerKey{}, &workerCall{worker: w, id: m.ID, wantsProgress: p.Progress}))
	w.mu.Lock()
	w.calls[id] = cancel
	w.mu.Unlock()
	w.running.Go(func() {
		answer, err := w.serve(ctx, &p)
		w.mu.Lock()
		delete(w.calls, id)
		w.mu.Unlock()
		cancel(errEnded) // nested calls end with it
		if err != nil {
			fmt.Fprintf(w.stderr, "skill failed: %s: %v (call %s)\n", p.Capability, err, p.CorrelationID)
			w.refuse(m.ID, errorOf(err))
			return
		}
		w.answer(m.ID, answer)
	})
}

// serve calls the function. That it panics is the failure of this call alone.
func (w *worker) serve(ctx context.Context, p *wire.InvokeParams) (answer []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	env := w.environment(p)
	ctx = WithEnvironment(ctx, env)
	if !env.Deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, env.Deadline)
		defer cancel()
	}
	return w.handle(ctx, p.Payload)
}

// environment is what a process would have of the call in its variables.
func (w *worker) environment(p *wire.InvokeParams) Environment {
	env := Environment{
		URL: w.at.URL, Call: p.Token, FleetRoot: w.at.FleetRoot, Agent: w.at.Agent, Capability: p.Capability,
		Caller: p.Caller, CallerProven: p.CallerProven, MessageID: p.MessageID, CorrelationID: p.CorrelationID,
		SessionID: p.SessionID, TenantID: p.TenantID, IdempotencyKey: p.IdempotencyKey, Traceparent: p.Traceparent, Tracestate: p.Tracestate, Hops: p.Hops,
	}
	if p.DeadlineMs > 0 {
		env.Deadline = time.UnixMilli(p.DeadlineMs)
	}
	return env
}

// errorOf is how agentd learns of a failure: the message of a [PublicError] is for the
// caller, and any other text for agentd's log.
func errorOf(err error) *wire.Error {
	public, retryable := judge(err)
	if public != nil {
		return &wire.Error{Code: wire.Failed, Message: public.Message, Data: wire.ErrorData{Retryable: retryable}}
	}
	code := wire.InternalError
	if errors.Is(err, context.Canceled) {
		code = wire.Cancelled
	}
	return &wire.Error{Code: code, Message: err.Error(), Data: wire.ErrorData{Retryable: retryable}}
}

// answer answers a call. An answer is JSON without line breaks, as marshal writes it.
func (w *worker) answer(id json.RawMessage, answer []byte) {
	line := make([]byte, 0, len(id)+len(answer)+len(`{"jsonrpc":"2.0","id":,"result":{"answer":}}`)+1)
	line = append(append(line, `{"jsonrpc":"2.0","id":`...), id...)
	line = append(append(append(line, `,"result":{"answer":`...), answer...), '}', '}', '\n')
	w.writeLine(line)
}

// respond and refuse answer other requests of agentd.
func (w *worker) respond(id json.RawMessage, result any) {
	w.write(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  any             `json:"result"`
	}{"2.0", id, result})
}

func (w *worker) refuse(id json.RawMessage, e *wire.Error) {
	w.write(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *wire.Error     `json:"error"`
	}{"2.0", id, e})
}

// ask sends a request or, with id nil, a notification.
func (w *worker) ask(id json.RawMessage, method string, params any) {
	w.write(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id,omitempty"`
		Method  string          `json:"method"`
		Params  any             `json:"params"`
	}{"2.0", id, method, params})
}

// write writes one message.
func (w *worker) write(v any) {
	line, err := marshal(v)
	if err != nil {
		fmt.Fprintln(w.stderr, "worker failed: encode a message:", err)
		return
	}
	w.writeLine(append(line, '\n'))
}

// writeLine writes a line, or has the goroutine do so that is writing already: it then writes
// all that has gathered at once. An agentd that does not read any more ends the worker anyway.
func (w *worker) writeLine(line []byte) {
	w.output.Lock()
	defer w.output.Unlock()
	w.pending = append(w.pending, line...)
	if w.writing {
		return
	}
	w.writing = true
	for len(w.pending) > 0 {
		batch := w.pending
		w.pending = nil
		w.output.Unlock()
		_, _ = w.stdout.Write(batch)
		w.output.Lock()
	}
	w.writing = false
}

// input is the standard input of the process. As far as it can be it is one that the Go
// runtime waits for: a read that blocks would hold a thread, and each call begin on another.
func input() io.Reader {
	const stdin = 0
	if err := syscall.SetNonblock(stdin, true); err != nil {
		return os.Stdin
	}
	return os.NewFile(stdin, os.Stdin.Name())
}

// A lockedWriter lets several calls write to the log.
type lockedWriter struct {
	mu sync.Mutex
	to io.Writer // guarded by mu
}

// Write implements [io.Writer].
func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(p)
}

// output takes the place of the standard output of the process, where a forgotten print would
// break the protocol.
func output() *os.File {
	stdout := os.Stdout
	os.Stdout = os.Stderr
	return stdout
}
