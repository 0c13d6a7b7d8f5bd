package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/logtest"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/internal/tlstest"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/transport/nats"
)

// starting starts an agent that waits for its broker, and returns when it does. A channel
// receives it, or nil and the error of its start from the second one.
func starting(t *testing.T, ctx context.Context, cfg daemon.Config) (*control.Client, chan *daemon.Daemon, chan error) {
	t.Helper()
	cfg.AwaitBroker = true
	started, failed := make(chan *daemon.Daemon, 1), make(chan error, 1)
	go func() {
		d, err := daemon.Start(ctx, cfg, "callee")
		started <- d
		failed <- err
	}()
	client := control.NewClient(cfg.Paths.Socket("callee"))
	t.Cleanup(client.Close)
	eventually.Succeeds(t, "the agent waits for its broker", func() error {
		_, err := client.Status(ctx)
		return err
	})
	return client, started, failed
}

// An agent whose broker is away when it starts says so everywhere, refuses calls, and starts
// when the broker is there.
func TestStartAwaitsBroker(t *testing.T) {
	server := natstest.Run(t, "")
	server.Stop()
	cfg := load(t, natsFiles(server.URL()))
	cfg.Handlers, cfg.Listen = handle(echo), "127.0.0.1:0"
	client, started, failed := starting(t, t.Context(), cfg)

	s, err := client.Status(t.Context())
	if err != nil || s.Ready || len(s.Conditions) != 1 || s.Conditions[0].Kind != health.Broker || s.Conditions[0].Code != "away" {
		t.Errorf("status %+v, %v", s, err)
	}
	refused := new(control.RefusedError)
	_, err = client.RequestAgent(t.Context(), rpc.Request{To: "agent://callee", Capability: "greet", Payload: []byte(`{}`)})
	if !errors.As(err, &refused) || refused.Code != "not-ready" || !strings.Contains(refused.Error(), server.Addr()) {
		t.Errorf("a call: %v", err)
	}
	if err := client.Ready(t.Context()); !errors.As(err, &refused) || !strings.Contains(refused.Error(), server.Addr()) {
		t.Errorf("ready: %v", err)
	}
	for path, want := range map[string]int{"/livez": http.StatusOK, "/readyz": http.StatusServiceUnavailable, "/startupz": http.StatusServiceUnavailable} {
		got, body := fetch(t, s.Monitoring+path)
		if got != want || path == "/readyz" && !strings.Contains(body, server.Addr()) {
			t.Errorf("%s: %d %q, want %d", path, got, body, want)
		}
	}

	server.Start()
	d := <-started
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	defer stop(t, &daemon.Fleet{Daemons: []*daemon.Daemon{d}})
	if err := client.Ready(t.Context()); err != nil {
		t.Errorf("ready with the broker: %v", err)
	}
	if s := d.Status(); len(s.Conditions) != 0 {
		t.Errorf("conditions %v", s.Conditions)
	}

	// The same condition holds while the broker is lost later.
	server.Stop()
	eventually.Holds(t, "the status names the broker", func() bool {
		all := d.Status().Conditions
		return len(all) == 1 && all[0].Kind == health.Broker
	})
	server.Start()
	eventually.Succeeds(t, "the agent is ready again", d.Ready)
}

// An agent whose certificates are not accepted says that it is these and not the network. It starts
// when their files are mended, also by steps.
func TestStartAwaitsCertificates(t *testing.T) {
	t.Parallel()
	ca := tlstest.NewAuthority(t)
	cert, key := ca.Issue("server", time.Hour)
	server := natstest.Run(t, fmt.Sprintf("tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true }", cert, key, ca.File))
	cfg := load(t, natsFiles("tls://"+server.Addr()))
	log := &logtest.Lines{}
	cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	dir := t.TempDir()
	cfg.NATS = nats.Options{CAFile: dir + "/ca.pem", CertFile: dir + "/cert.pem", KeyFile: dir + "/key.pem"}
	put := func(name, from string) {
		t.Helper()
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	late, lateKey := ca.Issue("late", -time.Hour)
	put("ca.pem", tlstest.NewAuthority(t).File)
	put("cert.pem", late)
	put("key.pem", lateKey)
	cfg.Handlers, cfg.Listen = handle(echo), "127.0.0.1:0"
	client, started, failed := starting(t, t.Context(), cfg)
	s, err := client.Status(t.Context())
	if err != nil || len(s.Conditions) != 1 || s.Conditions[0].Kind != health.Broker || s.Conditions[0].Code != "tls" || !strings.Contains(s.Conditions[0].Remedy, "AGENTD_NATS_CERT") {
		t.Errorf("status %+v, %v", s, err)
	}
	says := func(text string) {
		t.Helper()
		eventually.Holds(t, "readiness says "+text, func() bool {
			_, body := fetch(t, s.Monitoring+"/readyz")
			return strings.Contains(body, text)
		})
	}
	says("unknown authority")
	put("ca.pem", ca.File)
	says("has expired at ")
	if err := os.Remove(dir + "/cert.pem"); err != nil { // as some tools write files
		t.Fatal(err)
	}
	says("CertFile: ")
	cert, key = ca.Issue("callee", time.Hour)
	put("cert.pem", cert)
	says("private key does not match")
	put("key.pem", key)
	d := <-started
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	defer stop(t, &daemon.Fleet{Daemons: []*daemon.Daemon{d}})
	if err := client.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	if text := log.String(); !strings.Contains(text, "condition=broker code=tls") || strings.Contains(text, "code=away") || !strings.Contains(text, `msg="over: `) {
		t.Errorf("the log has\n%s", text)
	}
}

// A start that waits ends with its context, and leaves no socket.
func TestStartAwaitsBrokerUntilStopped(t *testing.T) {
	cfg := load(t, natsFiles("nats://127.0.0.1:1"))
	cfg.Handlers = handle(echo)
	ctx, cancel := context.WithCancel(t.Context())
	client, _, failed := starting(t, ctx, cfg)
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("the start ended with %v", err)
	}
	absent := new(control.NotRunningError)
	if _, err := client.Status(t.Context()); !errors.As(err, &absent) {
		t.Errorf("the socket: %v", err)
	}
}
