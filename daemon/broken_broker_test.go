package daemon_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/logtest"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/rpc"
)

// notReady waits until an agent is not ready for a reason that has all of the texts.
func notReady(t *testing.T, d *daemon.Daemon, texts ...string) {
	t.Helper()
	eventually.Holds(t, fmt.Sprintf("%q is why the agent is not ready", texts), func() bool {
		err := d.Ready()
		for _, text := range texts {
			if err == nil || !strings.Contains(err.Error(), text) {
				return false
			}
		}
		return true
	})
}

// A queue that an operator has replaced while the agent runs is said where it is looked for: the
// agent is not ready, and takes requests again once the queue is its own.
func TestReplacedQueue(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "jetstream {}")
	cfg := load(t, durableFiles(server.URL()))
	var logged logtest.Lines
	cfg.Logger, cfg.Handlers = logged.Logger(), handle(echo)
	callee, caller := startAgent(t, cfg, "callee"), startAgent(t, cfg, "caller")
	conn, err := natsgo.Connect(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	const topic = "agents.callee.requests.durable"
	name, err := js.StreamNameBySubject(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	// On a slow machine the agent may make it again first.
	eventually.Succeeds(t, "the stream is another one", func() error {
		if err := js.DeleteStream(t.Context(), name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return err
		}
		_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: []string{topic}, MaxAge: time.Hour})
		return err
	})
	notReady(t, callee, "durable-queue", name)
	if conditions := callee.Status().Conditions; len(conditions) != 1 || conditions[0].Code != "settings" {
		t.Errorf("%+v", conditions)
	}

	if err := js.DeleteStream(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	eventually.Succeeds(t, "the agent is ready", callee.Ready)
	result, err := caller.Client().RequestAgent(t.Context(), rpc.Request{
		To: "agent://callee", Capability: "go", Payload: json.RawMessage(`{"n":1}`), Mode: rpc.ModeAsync, Timeout: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	if result = caller.Await(t.Context(), result.CorrelationID); string(result.Response) != `{"n":1}` {
		t.Errorf("%+v", result)
	}
	if n := logged.Count("condition=durable-queue"); n < 2 || n > 4 { // its cause may change
		t.Errorf("%d lines of the log are about it:\n%s", n, &logged)
	}
}

// An agent that the broker forbids to listen, by permissions that were changed while it runs, is
// not ready, and serves requests again when they allow it: also those of a queue, for which it
// needs its inboxes.
func TestForbiddenToListen(t *testing.T) {
	t.Parallel()
	for _, subject := range []string{"agents.callee.requests", "_INBOX.>"} {
		t.Run(subject, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "nats.conf")
			write := func(denied string) {
				conf := fmt.Sprintf(`jetstream {}
no_auth_user: u
authorization {users: [{user: u, password: p, permissions: {subscribe: {allow: ">"%s}}}]}`, denied)
				if err := os.WriteFile(path, []byte(conf), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write("")
			server := natstest.RunFile(t, path)
			cfg := load(t, durableFiles(server.URL()))
			cfg.Handlers = handle(echo)
			callee, caller := startAgent(t, cfg, "callee"), startAgent(t, cfg, "caller")
			write(fmt.Sprintf(", deny: %q", subject))
			server.Restart()
			notReady(t, callee, "permissions", strings.TrimSuffix(subject, ">"))
			write("")
			server.Restart()
			eventually.Succeeds(t, "the agents are ready", func() error { return errors.Join(callee.Ready(), caller.Ready()) })
			var queued *rpc.Result
			eventually.Succeeds(t, "a request is queued", func() (err error) {
				queued, err = caller.Client().RequestAgent(t.Context(), rpc.Request{
					To: "agent://callee", Capability: "go", Payload: json.RawMessage(`{"n":1}`), Mode: rpc.ModeAsync, Timeout: time.Minute,
				})
				return err
			})
			if result := caller.Await(t.Context(), queued.CorrelationID); string(result.Response) != `{"n":1}` {
				t.Errorf("%+v", result)
			}
		})
	}
}
