package serve

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/agentd/agentd/internal/cli/clitest"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats"
)

// startBroker runs a broker until stop is called, which returns its error.
func startBroker(t *testing.T, env *clitest.Env, r BrokerRequest) (url string, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	own := env.Env
	own.Stdout = in
	ended := make(chan error, 1)
	go func() {
		err := Broker(ctx, &own, r)
		_ = in.Close() // ends the wait for the URL of a broker that did not start
		ended <- err
	}()
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		cancel()
		t.Fatalf("the broker printed no URL: %v", <-ended)
	}
	return strings.TrimSpace(url), func() error { cancel(); return <-ended }
}

func port(p uint16) *uint16 { return &p }

func TestBroker(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, "")
	url, stop := startBroker(t, env, BrokerRequest{Port: port(0)})
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
	store := filepath.Join(env.Vars["XDG_STATE_HOME"], "agentd", "broker")
	if _, err := os.Stat(filepath.Join(store, "jetstream")); err != nil {
		t.Errorf("no streams in the default store: %v", err)
	}
	if want := "streams are kept in " + store; !strings.Contains(env.Err.String(), want) {
		t.Errorf("standard error %q, want %q in it", env.Err, want)
	}
}

// The configuration file counts where the command line has nothing else.
func TestBrokerWithConfig(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, "")
	path := env.Write(t, "nats.conf", "port: -1\nmax_payload: 4096\n")
	url, stop := startBroker(t, env, BrokerRequest{ConfigFile: path})
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
	if strings.Contains(env.Err.String(), "streams") {
		t.Errorf("streams, although the file asks for none: %s", env.Err)
	}
}

func TestBrokerErrors(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, "")
	url, stop := startBroker(t, env, BrokerRequest{Port: port(0)})
	defer func() { _ = stop() }()
	taken, err := strconv.ParseUint(url[strings.LastIndex(url, ":")+1:], 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	noHome := clitest.New(t, "")
	noHome.Vars = nil
	badLevel := clitest.New(t, "")
	badLevel.LogLevel = "loud"
	for name, test := range map[string]struct {
		env     *clitest.Env
		request BrokerRequest
		want    string
	}{
		"port taken":   {env, BrokerRequest{Port: port(uint16(taken)), Store: t.TempDir()}, "choose another port"},
		"no such file": {env, BrokerRequest{ConfigFile: "/no/nats.conf"}, "/no/nats.conf"},
		"no store":     {noHome, BrokerRequest{Port: port(0)}, "neither XDG_STATE_HOME nor HOME is set"},
		"log level":    {badLevel, BrokerRequest{Port: port(0)}, "--log-level"},
	} {
		if err := Broker(t.Context(), &test.env.Env, test.request); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q in it", name, err, test.want)
		}
	}
}
