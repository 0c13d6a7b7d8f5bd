package dlq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/clitest"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/rpc"
)

// Agents without durable capabilities have no dead letters. Named, that is an
// answer that the user should see; among others, it is not.
func TestListOfAgentsWithoutDurableCalls(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	env.Start(t)
	env.Format = output.JSON
	if err := List(t.Context(), &env.Env, ""); err != nil || env.Out.String() != "[]\n" {
		t.Errorf("%v: %s", err, env.Out)
	}
	err := List(t.Context(), &env.Env, "clerk")
	if _, ok := errors.AsType[*control.RefusedError](err); !ok {
		t.Errorf("%v", err)
	}
	if err := Show(t.Context(), &env.Env, "clerk", "1"); clitest.Code(err) != cli.ExitFailed {
		t.Errorf("%v", err)
	}
}

// A shelf keeps dead letters behind the control API. The real one is a stream of
// NATS; what is tested here is what the command makes of its answers.
type shelf struct {
	mu      sync.Mutex
	letters []control.Letter // guarded by mu
}

func (s *shelf) Await(context.Context, string) *rpc.Result { return nil }

func (s *shelf) Letters(context.Context) ([]control.Letter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.letters), nil
}

func (s *shelf) Letter(_ context.Context, number uint64) (control.Letter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.letters {
		if l.Number == number {
			return l, nil
		}
	}
	return control.Letter{}, fmt.Errorf("there is no letter %d", number)
}

func (s *shelf) remove(ctx context.Context, number uint64) (control.Letter, error) {
	l, err := s.Letter(ctx, number)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.letters = slices.DeleteFunc(s.letters, func(l control.Letter) bool { return l.Number == number })
	return l, err
}

func (s *shelf) Redrive(ctx context.Context, number uint64, _ string) (control.Letter, error) {
	return s.remove(ctx, number)
}

func (s *shelf) Drop(ctx context.Context, number uint64, _ string) (control.Letter, error) {
	return s.remove(ctx, number)
}

// withLetters serves letters as the agent clerk.
func withLetters(t *testing.T, numbers ...uint64) *clitest.Env {
	t.Helper()
	env := clitest.New(t, clitest.Office)
	_, paths, err := env.InspectFleet()
	if err != nil {
		t.Fatal(err)
	}
	s := &shelf{}
	for _, n := range numbers {
		s.letters = append(s.letters, control.Letter{
			Number: n, Reason: "no answer", Attempts: 3, From: "agent://desk", Capability: "fi\x1ble", Bytes: 17, Body: []byte(`{"n":1}`),
		})
	}
	server, err := control.Listen(t.Context(), paths.Socket("clerk"), control.NewHandler(control.Agent{Durable: s}), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Shutdown(context.Background()) })
	if filepath.Base(server.Path()) != "clerk.sock" {
		t.Fatalf("the socket is %s", server.Path())
	}
	return env
}

func TestListAndShow(t *testing.T) {
	t.Parallel()
	env := withLetters(t, 4, 7)
	if err := List(t.Context(), &env.Env, ""); err != nil || strings.Count(env.Out.String(), "\n") != 3 || strings.Contains(env.Out.String(), "\x1b") ||
		!strings.Contains(env.Out.String(), `fi\x1ble`) {
		t.Errorf("%v: %s", err, env.Out)
	}
	env.Reset()
	env.Format = output.JSONL
	if err := List(t.Context(), &env.Env, "clerk"); err != nil || strings.Count(env.Out.String(), `{"agent":"clerk","number":`) != 2 {
		t.Errorf("%v: %s", err, env.Out)
	}
	env.Reset()
	env.Format = output.Table
	if err := Show(t.Context(), &env.Env, "clerk", "7"); err != nil || !strings.Contains(env.Out.String(), `"n": 1`) {
		t.Errorf("%v: %s", err, env.Out)
	}
}

// One number that fails does not keep the others from being changed, and the
// output has those that were.
func TestChange(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(context.Context, *cli.Env, string, []string) error
		format output.Format
		want   string
	}{
		"redrive": {Redrive, output.Table, "4 put back: fi\\x1ble of agent://desk\n7 put back: fi\\x1ble of agent://desk\n"},
		"drop":    {Drop, output.Table, "4 dropped: fi\\x1ble of agent://desk\n7 dropped: fi\\x1ble of agent://desk\n"},
	} {
		env := withLetters(t, 4, 7)
		env.Format = test.format
		err := test.change(t.Context(), &env.Env, "clerk", []string{"4", "5", "7"})
		if clitest.Code(err) != cli.ExitFailed || !strings.Contains(err.Error(), "there is no letter 5") || env.Out.String() != test.want {
			t.Errorf("%s: %v, %q; want %q", name, err, env.Out, test.want)
		}
		env.Reset()
		env.Format = output.JSON
		if err := List(t.Context(), &env.Env, "clerk"); err != nil || env.Out.String() != "[]\n" {
			t.Errorf("%s: %v, %s", name, err, env.Out)
		}
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	env := withLetters(t, 4)
	for _, number := range []string{"", "-1", "x", "1.0", "99999999999999999999"} {
		for name, err := range map[string]error{
			"show": Show(t.Context(), &env.Env, "clerk", number), "drop": Drop(t.Context(), &env.Env, "clerk", []string{"4", number}),
		} {
			if clitest.Code(err) != cli.ExitUsage || !strings.Contains(err.Error(), "is no number of a dead letter") {
				t.Errorf("%s %q: %v", name, number, err)
			}
		}
	}
	if err := Show(t.Context(), &env.Env, "clerk", "4"); err != nil {
		t.Errorf("a refused command dropped a letter: %v", err)
	}
}
