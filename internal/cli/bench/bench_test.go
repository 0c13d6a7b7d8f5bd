package bench

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/clitest"
	"github.com/agentd/agentd/internal/loadgen"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/rpc"
)

func TestRates(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]float64{"": DefaultRate, "500/s": 500, "500": 500, "30/m": 0.5, "36/h": 0.01, "1/h": 1.0 / 3600, "2.5/s": 2.5} {
		if got, err := parseRate(text); err != nil || math.Abs(got-want) > 1e-9 {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"0", "-1/s", "x", "1/d", "/s", "NaN", "Inf", "1e9/s", "1/s/s", "1e-11", "0.9/h"} {
		if got, err := parseRate(text); clitest.Code(err) != cli.ExitUsage {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// The errors of calls are named by what they mean to somebody who reads a table.
func TestOutcomesHaveNames(t *testing.T) {
	t.Parallel()
	limited := rpc.NewError(rpc.CodeRateLimited, nil, "slowly")
	limited.RetryIn = time.Second
	for name, test := range map[string]struct {
		result *rpc.Result
		err    error
		want   loadgen.Outcome
	}{
		"ok":         {&rpc.Result{Status: rpc.StatusOK}, nil, loadgen.Outcome{}},
		"limited":    {&rpc.Result{Status: rpc.StatusBusy, Error: limited}, nil, loadgen.Outcome{Status: "busy", Code: "EAGENTRPC_RATE_LIMITED", RetryAfter: time.Second}},
		"refused":    {nil, &control.RefusedError{Code: "too_large"}, loadgen.Outcome{Status: "refused", Code: "too_large"}},
		"connection": {nil, errors.New("reset"), loadgen.Outcome{Status: "failed", Code: "connection"}},
	} {
		if got := outcomeOf(test.result, test.err); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

// The agent that goes away ends the run: nothing comes of calling nobody.
func TestAgentThatGoesAway(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	f := env.Start(t)
	env.Format = output.JSON
	stopped := make(chan error, 1)
	go func() { stopped <- f.Stop(context.Background()) }()
	err := Run(t.Context(), &env.Env, Request{Caller: cli.Caller{Agent: "desk"}, Target: "clerk/file", Rate: "100/s", For: time.Hour})
	if serr := <-stopped; serr != nil {
		t.Error(serr)
	}
	if err == nil || clitest.Code(err) == cli.ExitInterrupted {
		t.Errorf("%v, %s", err, env.Out)
	}
}

// A run that its context ends has printed what it measured.
func TestInterruptedRunReports(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	env.Start(t)
	env.Format = output.JSON
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err := Run(ctx, &env.Env, Request{Caller: cli.Caller{Agent: "desk"}, Target: "clerk/file", Rate: "50/s", For: time.Hour})
	var r Report
	if jerr := json.Unmarshal([]byte(env.Out.String()), &r); jerr != nil || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%v, %v, %s", err, jerr, env.Out)
	}
	if r.Agent != "desk" || !r.Sampled || r.PayloadBytes == 0 || r.Due == 0 || r.Calls+r.Unfinished+r.Unsent != r.Due {
		t.Errorf("%+v", r)
	}
}

func TestSampleNeedsAContract(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	err := Run(t.Context(), &env.Env, Request{Target: "elsewhere/x", For: time.Second})
	if err == nil || !strings.Contains(err.Error(), "give a payload with --payload") {
		t.Error(err)
	}
}
