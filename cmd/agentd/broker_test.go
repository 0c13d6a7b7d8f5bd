package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats"
)

// startBroker runs the command in this process until stop is called, which
// returns its error.
func startBroker(t *testing.T, args ...string) (url string, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	status := make(chan error, 1)
	go func() {
		err := brokerCommand(ctx, in, args...)
		_ = in.Close() // ends the wait for the URL of a broker that did not start
		status <- err
	}()
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		cancel()
		t.Fatalf("the broker printed no URL: %v", <-status)
	}
	return strings.TrimSpace(url), func() error { cancel(); return <-status }
}

func brokerCommand(ctx context.Context, stdout io.Writer, args ...string) error {
	cmd := (&app{stdout: stdout, stderr: io.Discard, getenv: os.Getenv, logFormat: "text"}).brokerCommand()
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	return cmd.ExecuteContext(ctx)
}

func TestBrokerCommand(t *testing.T) {
	store := t.TempDir()
	url, stop := startBroker(t, "--port", "0", "--store", store)
	if !strings.HasPrefix(url, "nats://127.0.0.1:") {
		t.Errorf("URL %s, want one on loopback", url)
	}
	conn, err := nats.Connect(t.Context(), nats.Options{Servers: []string{url}})
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 1)
	if _, err := conn.Subscribe("t", "", func(m transport.Message) { got <- string(m.Data) }); err != nil {
		t.Fatal(err)
	}
	if err := conn.Publish(t.Context(), transport.Message{Topic: "t", Data: []byte("hello")}); err != nil {
		t.Fatal(err)
	}
	if data := <-got; data != "hello" {
		t.Errorf("got %q", data)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(store, "jetstream")); err != nil {
		t.Errorf("no streams in the store: %v", err)
	}
}

// What the command line does not say, the file does.
func TestBrokerCommandWithConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(path, []byte("port: -1\nmax_payload: 4096\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	url, stop := startBroker(t, "--config", path)
	conn, err := nats.Connect(t.Context(), nats.Options{Servers: []string{url}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if n := conn.MaxMessageBytes(); n != 4096 {
		t.Errorf("largest message %d, want the file's 4096", n)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestBrokerCommandErrors(t *testing.T) {
	url, stop := startBroker(t, "--port", "0", "--store", t.TempDir())
	defer func() { _ = stop() }()
	_, taken, _ := strings.Cut(strings.TrimPrefix(url, "nats://"), ":")
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"port taken":    {[]string{"--port", taken, "--store", t.TempDir()}, "choose another port"},
		"port too high": {[]string{"--port", "70000"}, "70000"},
		"no file":       {[]string{"--config", "/no/nats.conf"}, "/no/nats.conf"},
		"argument":      {[]string{"now"}, "unknown command"},
	} {
		if err := brokerCommand(t.Context(), io.Discard, test.args...); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q in it", name, err, test.want)
		}
	}
}
