package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/agentd/agentd/codegen/typed"
)

// Exit codes of a process skill.
const (
	// ExitOK means that stdout holds the result.
	ExitOK = 0
	// ExitFailed means that the call failed for good.
	ExitFailed = 1
	// ExitRetryable is EX_TEMPFAIL of sysexits.h: the call failed, and the
	// same call may succeed later.
	ExitRetryable = 75
)

// Main runs fn as a process skill and exits. It is all that func main of a
// skill needs; see [Run] for what it does.
//
// The context of fn ends on SIGTERM, on SIGINT and at [EnvDeadline]. A second
// signal ends the process at once. While fn runs, [os.Stdout] is stderr: a
// forgotten print lands in the log and does not spoil the result.
//
// A program that agentd starts as a worker serves many calls so, one at a time unless there
// is [Concurrent]; see [RunWorker]. Each has a context of its own, which also ends when the
// call is cancelled. agentd names the worker by [EnvWorker].
func Main[In, Out any](fn func(ctx context.Context, in In) (Out, error), opts ...Option) {
	mainOf(fn, nil, opts)
}

// isWorker reports whether agentd runs the program as a worker, and hides that from the
// programs that it starts in turn: those have another standard input.
func isWorker() bool {
	version := os.Getenv(EnvWorker)
	_ = os.Unsetenv(EnvWorker)
	return version != ""
}

// mainOf is Main. A worker says that it serves the capabilities; nil is every one.
func mainOf[In, Out any](fn func(ctx context.Context, in In) (Out, error), capabilities []string, opts []Option) {
	stdout := output()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	context.AfterFunc(ctx, stop)
	if isWorker() {
		os.Exit(newWorker(stdout, os.Stderr, capabilities, handle(fn), opts).run(ctx, input()))
	}
	os.Exit(Run(ctx, os.Stdin, stdout, os.Stderr, os.Getenv, fn))
}

// Run is [Main] without the process: it reads the payload from stdin, calls fn
// and returns the exit code, having written the result or the public error to
// stdout and everything else to stderr.
//
// The payload must be one JSON value that fits In, without unknown members. An
// empty stdin and null are calls without arguments: In is then what null is to it
// or, where it takes no null, what {} is, which is its zero value unless it decodes
// itself otherwise. A payload that does not fit
// is a [PublicError] to the caller. An error of fn that wraps a PublicError is
// shown to the caller, any other only logged. A context error and a retryable
// [CallError] exit with [ExitRetryable].
func Run[In, Out any](
	ctx context.Context,
	stdin io.Reader, stdout, stderr io.Writer,
	getenv func(string) string,
	fn func(ctx context.Context, in In) (Out, error),
) int {
	env, err := ReadEnvironment(getenv)
	if err != nil {
		return fail(stdout, stderr, err)
	}
	ctx = WithEnvironment(ctx, env)
	if !env.Deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, env.Deadline)
		defer cancel()
	}
	payload, err := io.ReadAll(stdin)
	if err != nil {
		return fail(stdout, stderr, fmt.Errorf("read the payload from stdin: %w", err))
	}
	// Encoded before the first byte is written: stdout holds a whole result or none.
	result, err := handle(fn)(ctx, payload)
	if err != nil {
		return fail(stdout, stderr, err)
	}
	if _, err := stdout.Write(append(result, '\n')); err != nil {
		return fail(io.Discard, stderr, fmt.Errorf("write the result: %w", err))
	}
	return ExitOK
}

// handle is fn from payload to result.
func handle[In, Out any](fn func(ctx context.Context, in In) (Out, error)) handler {
	return func(ctx context.Context, payload []byte) ([]byte, error) {
		var in In
		if err := readPayload(payload, &in); err != nil {
			return nil, err
		}
		out, err := fn(ctx, in)
		if err != nil {
			return nil, err
		}
		result, err := marshal(out)
		if err != nil {
			return nil, fmt.Errorf("encode the result: %w", err)
		}
		return result, nil
	}
}

// readPayload decodes the one JSON value that data holds into in, strictly.
func readPayload(data []byte, in any) error {
	return typed.Arguments(data, func(payload []byte) error {
		dec := json.NewDecoder(bytes.NewReader(payload))
		dec.DisallowUnknownFields()
		if err := dec.Decode(in); err != nil {
			return &PublicError{Message: "the payload does not fit the skill: " + payloadFault(err), Cause: err}
		}
		if _, err := dec.Token(); !errors.Is(err, io.EOF) {
			return Fail("the payload does not fit the skill: more than one JSON value")
		}
		return nil
	})
}

// payloadFault describes what is wrong with a payload in the caller's terms:
// with member names, but without Go types and without values.
func payloadFault(err error) string {
	var wrongType *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &wrongType):
		where := "/" + strings.ReplaceAll(wrongType.Field, ".", "/")
		kind, _, _ := strings.Cut(wrongType.Value, " ") // "number 1.5" holds the value
		return fmt.Sprintf("a %s is not allowed at %s", kind, where)
	case errors.As(err, &syntax):
		return fmt.Sprintf("invalid JSON at byte %d", syntax.Offset)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the JSON ends too early"
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return "unknown member " + name
	}
	return "a value cannot be decoded" // an UnmarshalJSON method's own words may hold anything
}

// publicFailure is the body of stdout after a failure that the caller may read.
type publicFailure struct {
	Error struct {
		Message   string `json:"message"`
		Retryable bool   `json:"retryable"`
	} `json:"error"`
}

// fail reports err on both streams and returns its exit code.
func fail(stdout, stderr io.Writer, err error) int {
	fmt.Fprintln(stderr, "skill failed:", err)
	public, retryable := judge(err)
	if public != nil {
		var body publicFailure
		body.Error.Message, body.Error.Retryable = public.Message, public.Retryable
		text, err := marshal(body)
		if err == nil {
			_, err = stdout.Write(append(text, '\n'))
		}
		if err != nil {
			fmt.Fprintln(stderr, "skill failed: write the error:", err)
		}
	}
	if retryable {
		return ExitRetryable
	}
	return ExitFailed
}

// judge returns what the caller may read of an error, or nil, and whether a later call may
// succeed.
func judge(err error) (public *PublicError, retryable bool) {
	if errors.As(err, &public) {
		return public, public.Retryable // the author's word counts
	}
	retryable = errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	if nested := new(CallError); errors.As(err, &nested) {
		retryable = retryable || nested.Retryable()
	}
	return nil, retryable
}

// marshal is json.Marshal without the escaping of <, > and & for HTML.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
