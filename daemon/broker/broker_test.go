package broker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentd/agentd/daemon/broker"
	"github.com/agentd/agentd/internal/logtest"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats"
	"github.com/agentd/agentd/transport/transporttest"
)

func start(t *testing.T, cfg broker.Config) *broker.Broker {
	t.Helper()
	if cfg.Port == 0 && cfg.ConfigFile == "" {
		cfg.Port = broker.RandomPort
	}
	b, err := broker.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, b) })
	return b
}

func stop(t *testing.T, b *broker.Broker) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := b.Stop(ctx); err != nil {
		t.Error(err)
	}
}

func TestCarriesMessages(t *testing.T) {
	transporttest.Run(t, func(t *testing.T) transporttest.Broker {
		b := start(t, broker.Config{})
		return transporttest.Broker{MaxPending: 1000, Connect: func(t *testing.T) transport.Transport {
			c, err := nats.Connect(t.Context(), nats.Options{Servers: []string{b.URL()}, MaxPending: 1000})
			if err != nil {
				t.Fatal(err)
			}
			return c
		}}
	})
}

// What a stream keeps is there after a restart.
func TestStreamsOutliveTheBroker(t *testing.T) {
	store := t.TempDir()
	first := start(t, broker.Config{StoreDir: store})
	if dir, on := first.JetStream(); !on || !strings.HasPrefix(dir, store) {
		t.Errorf("JetStream %v in %q, want it in %q", on, dir, store)
	}
	stream := func(b *broker.Broker) jetstream.Stream {
		nc, err := natsgo.Connect(b.URL())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		s, err := js.CreateOrUpdateStream(t.Context(), jetstream.StreamConfig{Name: "calls", Subjects: []string{"calls.>"}})
		if err != nil {
			t.Fatal(err)
		}
		if b == first {
			if _, err := js.Publish(t.Context(), "calls.one", []byte("kept")); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	stream(first)
	stop(t, first)
	second := start(t, broker.Config{StoreDir: store})
	m, err := stream(second).GetLastMsgForSubject(t.Context(), "calls.one")
	if err != nil || string(m.Data) != "kept" {
		t.Errorf("after the restart: %v, %v", m, err)
	}
}

func TestWithoutStoreThereIsNoJetStream(t *testing.T) {
	if dir, on := start(t, broker.Config{}).JetStream(); on {
		t.Errorf("JetStream is on, in %q", dir)
	}
}

func TestConfigFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nats.conf")
	conf := "port: -1\nmax_payload: 2048\nauthorization { user: u, password: p }\n"
	if err := os.WriteFile(path, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	b := start(t, broker.Config{ConfigFile: path})
	if _, err := nats.Connect(t.Context(), nats.Options{Servers: []string{b.URL()}}); !errors.Is(err, transport.Denied) {
		t.Errorf("without the password: %v", err)
	}
	c, err := nats.Connect(t.Context(), nats.Options{
		Servers: []string{b.URL()}, User: "u", Password: "env:P", Getenv: func(string) string { return "p" },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if n := c.MaxMessageBytes(); n != 2048 {
		t.Errorf("largest message %d, want the file's 2048", n)
	}
}

func TestStartErrors(t *testing.T) {
	taken := start(t, broker.Config{})
	_, port, _ := strings.Cut(taken.Addr(), ":")
	var number int
	if _, err := fmt.Sscan(port, &number); err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(bad, []byte("port: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx  context.Context
		cfg  broker.Config
		want string
	}{
		"port taken":      {t.Context(), broker.Config{Port: number}, "address already in use (choose another port)"},
		"no file":         {t.Context(), broker.Config{ConfigFile: "/no/nats.conf"}, "/no/nats.conf"},
		"bad file":        {t.Context(), broker.Config{ConfigFile: bad}, "nats.conf"},
		"foreign address": {t.Context(), broker.Config{Host: "192.0.2.1", Port: broker.RandomPort}, "192.0.2.1"},
		"store no folder": {t.Context(), broker.Config{Port: broker.RandomPort, StoreDir: bad}, "did not start"},
		"cancelled":       {cancelled, broker.Config{Port: broker.RandomPort}, "cancel"},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := broker.Start(test.ctx, test.cfg)
			if err == nil {
				stop(t, b)
				t.Fatal("started")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q in it", err, test.want)
			}
		})
	}
}

func TestStopIsBounded(t *testing.T) {
	b := start(t, broker.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	// It may have stopped by then, or not; it must not wait either way.
	if err := b.Stop(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	stop(t, b)
}

func TestLogsToSlog(t *testing.T) {
	var log logtest.Lines
	start(t, broker.Config{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), Name: "the-broker"})
	if text := log.String(); !strings.Contains(text, "level=DEBUG") || !strings.Contains(text, "the-broker") {
		t.Errorf("the log has no name of the server in it:\n%s", text)
	}
}

func TestDefaultStoreDir(t *testing.T) {
	for want, environment := range map[string]map[string]string{
		"/s/agentd/broker":              {"XDG_STATE_HOME": "/s", "HOME": "/h"},
		"/h/.local/state/agentd/broker": {"XDG_STATE_HOME": "relative", "HOME": "/h"},
	} {
		got, err := broker.DefaultStoreDir(func(name string) string { return environment[name] })
		if err != nil || got != filepath.FromSlash(want) {
			t.Errorf("%v: %q, %v; want %q", environment, got, err, want)
		}
	}
	if dir, err := broker.DefaultStoreDir(func(string) string { return "" }); err == nil {
		t.Errorf("without a home: %q", dir)
	}
}

func Example() {
	b, err := broker.Start(context.Background(), broker.Config{Port: broker.RandomPort})
	if err != nil {
		fmt.Println(err)
		return
	}
	conn, err := nats.Connect(context.Background(), nats.Options{Servers: []string{b.URL()}})
	fmt.Println(conn.Kind(), err)
	_ = conn.Close()
	_ = b.Stop(context.Background())
	// Output: nats <nil>
}
