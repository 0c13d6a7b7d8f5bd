package web_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/web"
)

// resolve gives an agent the capability with a configuration.
func resolve(t *testing.T, config string) (*registry.Resolved, error) {
	t.Helper()
	known := registry.New()
	if err := known.Register(web.Resolver{}); err != nil {
		t.Fatal(err)
	}
	agent, err := known.Resolve(registry.Context{Context: t.Context(), Secret: func(_ context.Context, ref string) (string, error) {
		if ref != "env:TOKEN" {
			return "", errors.New("environment variable is not set")
		}
		return "s3cret-token", nil
	}}, []registry.Capability{{Key: "http", Config: json.RawMessage(config)}})
	if err == nil {
		t.Cleanup(func() { agent.Close(context.WithoutCancel(t.Context())) })
	}
	return agent, err
}

func call(t *testing.T, agent *registry.Resolved, tool, args string) (string, registry.Code) {
	t.Helper()
	result := agent.Call(t.Context(), tool, json.RawMessage(args))
	if code := registry.FailureCode(result); code != "" {
		return fmt.Sprint(result.Content), code
	}
	return fmt.Sprintf("%s", result.StructuredContent), ""
}

func TestTools(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/plain")
		w.Header()["Date"] = nil
		fmt.Fprintf(w, "%s %s %s %s", r.Method, r.Header.Get("Content-Type"), r.Header.Get("Authorization"), body)
	}))
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	common := `"hosts": ["127.0.0.1:*"], "caFile": "` + ca + `", "credentials": [{"host": "127.0.0.1:*", "scheme": "Bearer", "secret": "env:TOKEN"}]`
	agent, err := resolve(t, `{`+common+`, "allowAddresses": ["127.0.0.0/8"], "post": true}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range [][3]string{
		{"http_get", `{}`, `"GET  [redacted] "`},
		{"http_post", `{"body": "a text"}`, `"POST text/plain; charset=utf-8 [redacted] a text"`},
		{"http_post", `{"body": {"n": 12345678901234567890}}`, `"POST application/json [redacted] {\"n\": 12345678901234567890}"`},
		{"http_post", `{"body": null}`, `"POST application/json [redacted] null"`},
		{"http_post", `{"body": "<a/>", "headers": {"content-type": "text/xml"}}`, `"POST text/xml [redacted] <a/>"`},
	} {
		args := strings.Replace(row[1], "{", `{"url": "`+server.URL+`"`, 1)
		if row[1] != "{}" {
			args = strings.Replace(row[1], "{", `{"url": "`+server.URL+`",`, 1)
		}
		got, code := call(t, agent, row[0], args)
		var result struct{ Body json.RawMessage }
		if err := json.Unmarshal([]byte(got), &result); err != nil || code != "" {
			t.Fatalf("%s %s: %s", row[0], args, got)
		}
		var have, want string
		if json.Unmarshal(result.Body, &have) != nil || json.Unmarshal([]byte(row[2]), &want) != nil || have != want {
			t.Errorf("%s %s: %s", row[0], row[1], got)
		}
	}
	for _, row := range []struct {
		tool, args string
		want       registry.Code
	}{
		{"http_get", `{"url": "https://example.com/"}`, registry.PermissionDenied},
		{"http_get", `{"url": "file:///etc/passwd"}`, registry.PermissionDenied},
		{"http_get", `{"url": "http://2130706433/"}`, registry.InvalidArguments},
		{"http_get", `{"url": ""}`, registry.InvalidArguments},
		{"http_get", `{"url": "` + server.URL + `", "body": "x"}`, registry.InvalidArguments},
		{"http_get", `{"url": "` + server.URL + `", "headers": {"Host": "evil.test"}}`, registry.InvalidArguments},
		{"http_post", `{"url": "` + server.URL + `"}`, registry.InvalidArguments},
		{"http_post", `{"url": "https://169.254.169.254/", "body": ""}`, registry.PermissionDenied},
	} {
		if got, code := call(t, agent, row.tool, row.args); code != row.want {
			t.Errorf("%s %s: %s", row.tool, row.args, got)
		}
	}
	// Without the range, loopback is refused although the host is listed.
	if agent, err = resolve(t, `{`+common+`}`); err != nil {
		t.Fatal(err)
	}
	if got, code := call(t, agent, "http_get", `{"url": "`+server.URL+`"}`); code != registry.PermissionDenied {
		t.Error(got)
	}
	if got, code := call(t, agent, "http_post", `{"url": "`+server.URL+`", "body": ""}`); code != registry.NotFound {
		t.Errorf("not told to post: %s", got)
	}
}

func TestConfigIsRefused(t *testing.T) {
	for config, want := range map[string]string{
		`{}`:                            "hosts",
		`{"hosts": []}`:                 "hosts",
		`{"hosts": ["https://a.test"]}`: "without a scheme",
		`{"hosts": ["a.test"], "allowAddresses": ["x"]}`:                                 "range of addresses",
		`{"hosts": ["a.test"], "credentials": [{"host": "a.test", "secret": "env:NO"}]}`: "not set",
		`{"hosts": ["a.test"], "tools": ["http_post"]}`:                                  "http_post",
		`{"hosts": ["a.test"], "secret": "x"}`:                                           "secret",
	} {
		if _, err := resolve(t, config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", config, err)
		}
	}
}
