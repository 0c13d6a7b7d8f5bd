package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/skill/internal/wire"
)

// Bounds of what a worker says of a failure: to the caller, and to the log.
const (
	maxMessageText = 2048
	maxPrivateText = 8 << 10
)

// errNotBegun is the outcome of a call that its instance cannot have read.
var errNotBegun = errors.New("worker: the call has not begun")

// A call is one that waits for an instance, or runs on one.
type call struct {
	ctx   context.Context
	inv   *rpc.Invocation
	token string
	// done receives the one outcome.
	done chan outcome
	// instance is the one that has taken the call; set before taken is closed.
	instance *instance
	taken    chan struct{}

	// What follows is the instance's own.
	id      uint64
	end     int64     // where the call ends in what the instance is sent
	grace   time.Time // when it must have answered the cancelled call; zero while it runs
	nested  int       // requests in progress
	unheard bool      // some of its progress is lost
	usages  int       // reports of what models used
	refused bool      // one of those was refused
	nesting context.Context
	unnest  context.CancelCauseFunc
}

// An outcome is how a call ended.
type outcome struct {
	answer json.RawMessage
	err    error
}

// errCallEnded is the cause with which nested calls end that their call does not wait for.
var errCallEnded = errors.New("the call that this one is nested in has ended")

// finish is called once by the instance.
func (c *call) finish(o outcome) {
	if c.unnest != nil {
		c.unnest(errCallEnded)
	}
	c.done <- o
}

// nestedContext is that of nested calls: it ends with the call.
func (c *call) nestedContext() context.Context {
	if c.nesting == nil {
		c.nesting, c.unnest = context.WithCancelCause(c.ctx)
	}
	return c.nesting
}

// wait waits for the outcome of a call that an instance has taken.
func (c *call) wait() (json.RawMessage, error) {
	select {
	case o := <-c.done:
		return o.answer, o.err
	case <-c.ctx.Done():
	}
	// It ends soon: the worker answers, or is ended.
	<-c.taken
	select {
	case c.instance.cancelled <- c:
	case o := <-c.done:
		return o.answer, o.err
	}
	<-c.done
	return nil, stopped(c.ctx)
}

// stopped is the error of a call that was stopped before its answer.
func stopped(ctx context.Context) error {
	return fmt.Errorf("skill: stopped: %w", context.Cause(ctx))
}

// answer turns a response to an invocation into an outcome.
func answerOf(m *wire.Message, maxBytes int) outcome {
	if m.Err != nil {
		return outcome{err: failure(m.Err)}
	}
	answer := wire.Member(m.Result, "answer")
	if answer == nil {
		return outcome{err: &rpc.SkillError{Code: rpc.CodeBadSkillOutput, Message: `the worker's result has no member "answer"`}}
	}
	if len(answer) > maxBytes {
		return outcome{err: &rpc.SkillError{Code: rpc.CodeBadSkillOutput, Message: fmt.Sprintf("the skill answered with more than %d bytes", maxBytes)}}
	}
	return outcome{answer: answer}
}

// failure is the error of a call that the worker has answered with one. The caller sees the
// message of [wire.Failed] alone: any other is the program's own.
func failure(raw json.RawMessage) error {
	var e wire.Error
	if err := json.Unmarshal(raw, &e); err != nil {
		return fmt.Errorf("worker: its error cannot be read: %w", err)
	}
	if e.Code != wire.Failed {
		err := fmt.Errorf("worker: error %d: %s", e.Code, truncate.String(e.Message, maxPrivateText))
		if e.Data.Retryable {
			return &rpc.SkillError{Message: "the skill failed", Retryable: true, Err: err}
		}
		return err
	}
	text := strings.ToValidUTF8(e.Message[:min(len(e.Message), maxMessageText)], "")
	if text == "" {
		text = "the skill failed"
	}
	return &rpc.SkillError{Message: text, Retryable: e.Data.Retryable}
}
