package notify_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/notify"
)

// resolve gives an agent the capability with a configuration.
func resolve(t *testing.T, config string) (*registry.Resolved, error) {
	t.Helper()
	known := registry.New()
	if err := known.Register(notify.Resolver{}); err != nil {
		t.Fatal(err)
	}
	agent, err := known.Resolve(registry.Context{Context: t.Context(), Secret: func(_ context.Context, ref string) (string, error) {
		return "", errors.New("environment variable is not set")
	}}, []registry.Capability{{Key: "notify", Config: json.RawMessage(config)}})
	if err == nil {
		t.Cleanup(func() { agent.Close(context.WithoutCancel(t.Context())) })
	}
	return agent, err
}

func call(t *testing.T, agent *registry.Resolved, args string) (string, registry.Code) {
	t.Helper()
	result := agent.Call(t.Context(), "send_notification", json.RawMessage(args))
	encoded, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded), registry.FailureCode(result)
}

// serve starts a service that keeps what it gets.
func serve(t *testing.T) (url string, got chan string) {
	t.Helper()
	got = make(chan string, 16)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- string(body)
	}))
	t.Cleanup(server.Close)
	return server.URL, got
}

func TestSendNotification(t *testing.T) {
	url, got := serve(t)
	hook := fmt.Sprintf(`{"url": %q, "allowAddresses": ["127.0.0.0/8"], "body": {"text": "{channel}: {message}"}}`, url)
	agent, err := resolve(t, `{"webhook": `+hook+`, "push": `+hook+`, "perHour": 2}`)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		args, body string
		want       registry.Code
	}{
		{`{"message": "x"}`, "", registry.InvalidArguments}, // two channels, and no default
		{`{"message": "x", "channel": "sms"}`, "", registry.InvalidArguments},
		{`{"message": "", "channel": "push"}`, "", registry.InvalidArguments},
		{`{"message": "\u0000", "channel": "push"}`, "", registry.InvalidArguments},
		{`{"message": "x", "channel": "push", "url": "https://evil.test/"}`, "", registry.InvalidArguments},
		{`{"message": "a\"b", "channel": "push"}`, `{"text":"push: a\"b"}`, ""},
		{`{"message": "x", "channel": "webhook"}`, `{"text":"webhook: x"}`, ""},
		{`{"message": "x", "channel": "webhook"}`, "", registry.RateLimitExceeded},
	} {
		result, code := call(t, agent, c.args)
		if code != c.want {
			t.Errorf("%d: %s, want %q", i, result, c.want)
			continue
		}
		if code == "" {
			if body := <-got; body != c.body || !strings.Contains(result, `"status":"accepted"`) {
				t.Errorf("%d: %s, the service got %s", i, result, body)
			}
		}
	}
	if len(got) > 0 {
		t.Error("the service got more")
	}
	// With one channel, there is nothing to choose.
	if agent, err = resolve(t, `{"push": `+hook+`}`); err != nil {
		t.Fatal(err)
	}
	if result, code := call(t, agent, `{"message": "x"}`); code != "" || <-got != `{"text":"push: x"}` {
		t.Error(result)
	}
}

func TestConfigIsRefused(t *testing.T) {
	for config, want := range map[string]string{
		`{}`:           "no channel is configured",
		`{"fax": {}}`:  "fax",
		`{"push": {}}`: "url",
		`{"push": {"url": "http://hooks.example.com/"}}`:                             "by https",
		`{"push": {"url": "env:HOOK"}}`:                                              "not set",
		`{"push": {"url": "https://hooks.example.com/"}, "default": "sms"}`:          `"sms" is not configured`,
		`{"push": {"url": "https://hooks.example.com/", "hosts": ["*"]}}`:            "hosts",
		`{"push": {"url": "https://hooks.example.com/", "body": {"text": "hello"}}}`: "{message}",
		`{"email": {"server": "mail.example.com", "from": "a@b.c", "to": []}}`:       "to",
		`{"push": {"url": "https://hooks.example.com/"}, "tools": ["page"]}`:         `no tool "page"`,
	} {
		if _, err := resolve(t, config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", config, err)
		}
	}
}
