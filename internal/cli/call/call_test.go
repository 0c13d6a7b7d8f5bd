package call

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/daemon/skillapi"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/clitest"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/rpc"
)

func result(t *testing.T, env *clitest.Env) *rpc.Result {
	t.Helper()
	var r rpc.Result
	if err := json.Unmarshal([]byte(env.Out.String()), &r); err != nil {
		t.Fatalf("%v in %s", err, env.Out)
	}
	return &r
}

func text(s string) *string { return &s }

// The result is on standard output, and the exit status tells whether it is ok.
func TestRequest(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	env.Start(t)
	desk := cli.Caller{Agent: "desk"}
	for name, test := range map[string]struct {
		call   Call
		code   int
		status rpc.Status
		want   string
	}{
		"ok":           {Call{Caller: desk, To: "clerk", Capability: "echo", Payload: text(`{"n":1.0}`), Mode: "sync"}, 0, rpc.StatusOK, `{"n":1.0}`},
		"address":      {Call{Caller: desk, To: "agent://clerk", Capability: "echo", Payload: text(`"<&>"`)}, 0, rpc.StatusOK, `"<&>"`},
		"no payload":   {Call{Caller: desk, To: "clerk", Capability: "echo"}, 0, rpc.StatusOK, "null"},
		"bad payload":  {Call{Caller: desk, To: "clerk", Capability: "file", Payload: text(`{}`)}, cli.ExitCall, rpc.StatusSchemaViolation, ""},
		"unknown peer": {Call{Caller: desk, To: "who", Capability: "echo"}, cli.ExitCall, rpc.StatusError, ""},
		"mode":         {Call{Caller: desk, To: "clerk", Capability: "echo", Mode: "later"}, cli.ExitCall, rpc.StatusError, ""},
		"not durable":  {Call{Caller: desk, To: "clerk", Capability: "echo", Mode: "async"}, cli.ExitCall, rpc.StatusError, ""},
	} {
		env.Reset()
		env.Format = output.JSONL
		err := Request(t.Context(), &env.Env, test.call)
		if clitest.Code(err) != test.code {
			t.Errorf("%s: %v, want status %d", name, err, test.code)
			continue
		}
		if r := result(t, env); r.Status != test.status || test.want != "" && string(r.Response) != test.want {
			t.Errorf("%s: %s", name, env.Out)
		}
		if strings.Count(env.Out.String(), "\n") != 1 || env.Err.String() != "" {
			t.Errorf("%s: %s%s", name, env.Out, env.Err)
		}
	}
}

// A call that cannot be made prints no result: a script would take it for one.
func TestRequestWithoutAgent(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	for name, c := range map[string]Call{
		"nobody runs": {To: "clerk", Capability: "echo"},
		"not running": {Caller: cli.Caller{Agent: "desk"}, To: "clerk", Capability: "echo"},
		"no socket":   {Caller: cli.Caller{Socket: filepath.Join(env.Dir, "no.sock")}, To: "clerk", Capability: "echo"},
		"not JSON":    {Caller: cli.Caller{Agent: "desk"}, To: "clerk", Capability: "echo", Payload: text("{")},
		"empty":       {Caller: cli.Caller{Agent: "desk"}, To: "clerk", Capability: "echo", Payload: text("")},
	} {
		if err := Request(t.Context(), &env.Env, c); clitest.Code(err) != cli.ExitFailed || env.Out.String() != "" {
			t.Errorf("%s: %v, %s", name, err, env.Out)
		}
	}
}

// Inside a skill each command is part of the skill's call. One that has ended, or never
// existed, is refused.
func TestCommandsOfASkill(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	if err := Progress(t.Context(), &env.Env, "1"); err == nil || !strings.Contains(err.Error(), "AGENTD_URL is not set: this command is for skills") {
		t.Errorf("outside of a skill: %v", err)
	}
	api, err := skillapi.Listen(t.Context(), skillapi.Config{
		Caller: nested{}, Results: nested{}, MaxPayloadBytes: func() int { return 1 << 10 }, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer api.Shutdown(context.Background())
	token, release := api.Register(rpc.WithInvocation(t.Context(), &rpc.Invocation{CorrelationID: "c-1"}))
	env.Vars["AGENTD_URL"], env.Vars["AGENTD_CALL"] = api.URL(), token
	commands := map[string]func() error{
		"request":  func() error { return Request(t.Context(), &env.Env, Call{To: "clerk", Capability: "echo"}) },
		"await":    func() error { return Await(t.Context(), &env.Env, cli.Caller{}, "id", time.Second) },
		"progress": func() error { return Progress(t.Context(), &env.Env, `{"done":1}`) },
	}
	for name, run := range commands {
		env.Reset()
		if err := run(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if name != "progress" && result(t, env).CorrelationID != "c-1" {
			t.Errorf("%s: %s", name, env.Out)
		}
	}
	if err := Progress(t.Context(), &env.Env, `{`); err == nil || !strings.Contains(err.Error(), "is not JSON") {
		t.Errorf("%v", err)
	}
	release()
	for name, run := range commands {
		if refused, ok := errors.AsType[*skillapi.RefusedError](run()); !ok || refused.HTTPStatus != 403 || !strings.Contains(refused.Message, "has ended, or never existed") {
			t.Errorf("%s of a call that has ended: %v", name, refused)
		}
	}
}

// nested answers with the call that it is asked in.
type nested struct{}

func (nested) RequestAgent(ctx context.Context, _ rpc.Request) (*rpc.Result, error) {
	return nested{}.Await(ctx, ""), nil
}

func (nested) Await(ctx context.Context, _ string) *rpc.Result {
	return &rpc.Result{Status: rpc.StatusOK, CorrelationID: rpc.InvocationFrom(ctx).CorrelationID}
}

func TestAwaitErrors(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	env.Start(t)
	desk := cli.Caller{Agent: "desk"}
	for _, timeout := range []time.Duration{0, time.Microsecond, time.Hour + 1, -time.Second} {
		if err := Await(t.Context(), &env.Env, desk, "id", timeout); clitest.Code(err) != cli.ExitUsage || !strings.Contains(err.Error(), "from 1ms to 1h") {
			t.Errorf("%s: %v", timeout, err)
		}
	}
	if err := Await(t.Context(), &env.Env, cli.Caller{}, "id", time.Second); clitest.Code(err) != cli.ExitUsage || !strings.Contains(err.Error(), "--as clerk") {
		t.Errorf("several agents: %v", err)
	}
	err := Await(t.Context(), &env.Env, desk, "../id", time.Second)
	if clitest.Code(err) == 0 {
		t.Errorf("an agent without durable calls has an answer: %s", env.Out)
	}
}

// A cancelled command ends at once, although the call would go on.
func TestRequestIsCancelled(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	env.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	// The permission asks a person, who never answers.
	err := Request(ctx, &env.Env, Call{Caller: cli.Caller{Agent: "desk"}, To: "clerk", Capability: "sign", Timeout: time.Minute})
	if !errors.Is(err, context.DeadlineExceeded) || env.Out.String() != "" {
		t.Errorf("%v, %s", err, env.Out)
	}
}

// Progress is on standard error in the chosen format, so that standard output
// stays one result.
func TestWriteProgress(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, "")
	e := rpc.ProgressEvent{Seq: 2, Attempt: 1, Value: json.RawMessage(`{"done":1}`)}
	for format, want := range map[output.Format]string{
		output.Table: "progress 2: {\"done\":1}\n",
		output.JSON:  "{\"seq\":2,\"attempt\":1,\"value\":{\"done\":1}}\n",
		output.JSONL: "{\"seq\":2,\"attempt\":1,\"value\":{\"done\":1}}\n",
	} {
		env.Reset()
		env.Format = format
		writeProgress(&env.Env, e)
		if env.Err.String() != want || env.Out.String() != "" {
			t.Errorf("%s: %q%s, want %q", format, env.Err, env.Out, want)
		}
	}
}

func TestPayloadFromFile(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	env.Start(t)
	path := env.Write(t, "form.json", `{"form":"A1"}`)
	err := Request(t.Context(), &env.Env, Call{Caller: cli.Caller{Agent: "desk"}, To: "clerk", Capability: "file", Payload: text("@" + path)})
	if err != nil || string(result(t, env).Response) == "" {
		t.Errorf("%v: %s", err, env.Out)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := Request(t.Context(), &env.Env, Call{Caller: cli.Caller{Agent: "desk"}, To: "clerk", Capability: "file", Payload: text("@" + path)}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
}
