package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/agentd/agentd/skill/internal/wire"
)

// A Config says what is checked. The zero value of an optional field is its default.
type Config struct {
	// Command is the worker. Required.
	Command []string
	// Dir is its working directory; "" is that of this process.
	Dir string
	// Capabilities are offered to it besides those of the check.
	Capabilities []wire.Capability
	// Calls are made of them.
	Calls []Call
	// StartTimeout is how long the worker may take until it answers initialize. Default 30 s.
	StartTimeout time.Duration
	// Timeout is how long it may take to answer anything else. Default 10 s.
	Timeout time.Duration
	// Grace is how long it may take to end a cancelled call, and itself. Default 2 s.
	Grace time.Duration
	// Stderr gets its standard error. Nil discards it.
	Stderr io.Writer
}

// A Capability is one that is offered to the worker.
type Capability = wire.Capability

// A Call is one that the worker must answer.
type Call struct {
	Capability string
	Payload    json.RawMessage
	// Judge reports what is wrong with the answer. Nil takes any.
	Judge func(answer json.RawMessage) error
}

// An Outcome is how a check ended.
type Outcome string

// The outcomes.
const (
	Passed Outcome = "ok"
	Failed Outcome = "failed"
	// Skipped is a check that the worker gives no occasion for.
	Skipped Outcome = "skipped"
)

// A Check is one thing that was checked.
type Check struct {
	// Name is what the worker should do.
	Name string `json:"name"`
	// Outcome is how the check ended.
	Outcome Outcome `json:"outcome"`
	// Detail says why it failed or was skipped.
	Detail string `json:"detail,omitempty"`
}

// Run checks a worker, and calls report after each check. passed is true if none failed. The
// error says that the command could not be started.
func Run(ctx context.Context, cfg Config, report func(Check)) (passed bool, err error) {
	if len(cfg.Command) == 0 {
		return false, errors.New("conformance: Config.Command is required")
	}
	orElse := func(value *time.Duration, other time.Duration) {
		if *value <= 0 {
			*value = other
		}
	}
	orElse(&cfg.StartTimeout, 30*time.Second)
	orElse(&cfg.Timeout, 10*time.Second)
	orElse(&cfg.Grace, 2*time.Second)
	r := &run{ctx: ctx, cfg: &cfg, report: report, passed: true}
	for _, sequence := range sequences() {
		if err := r.sequence(sequence); err != nil {
			return false, err
		}
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
	}
	return r.passed, nil
}

// A run is one check of a worker.
type run struct {
	ctx    context.Context
	cfg    *Config
	report func(Check)
	passed bool
}

// A step is one check. It returns a [skip] for one that does not apply.
type step struct {
	name string
	do   func(*session) error
}

// A skip says why a check does not apply.
type skip string

func (s skip) Error() string { return string(s) }

// sequence takes one process through some steps. After a failure the process is in no known
// state: another one does the next step.
func (r *run) sequence(steps []step) error {
	var s *session
	defer func() {
		if s != nil {
			s.close()
		}
	}()
	for _, step := range steps {
		if r.ctx.Err() != nil {
			return nil
		}
		var err error
		if s == nil {
			if s, err = open(r.ctx, r.cfg); err != nil {
				return fmt.Errorf("start %s: %w", r.cfg.Command[0], err)
			}
			if step.name != steps[0].name {
				err = initialize(s)
			}
		}
		if err == nil {
			err = step.do(s)
		}
		c := Check{Name: step.name, Outcome: Passed}
		var skipped skip
		switch {
		case errors.As(err, &skipped):
			c.Outcome, c.Detail = Skipped, err.Error()
		case err != nil:
			c.Outcome, c.Detail, r.passed = Failed, err.Error(), false
			s.close()
			s = nil
		}
		r.report(c)
		if s == nil && step.name == steps[0].name {
			return nil // what it does not begin it does not go on with
		}
	}
	return nil
}
