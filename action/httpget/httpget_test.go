package httpget_test

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/action"
	"github.com/agentd/agentd/action/httpget"
	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/netguard"
	"github.com/agentd/agentd/schema"
)

// serve starts an HTTPS server and returns a configuration that reaches it.
func serve(t *testing.T, handler http.HandlerFunc) (base string, c httpget.Config) {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
	if err := os.WriteFile(ca, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	return server.URL, httpget.Config{Config: netguard.Config{
		Hosts: []string{"127.0.0.1:*"}, AllowAddresses: []string{"127.0.0.1/32"}, CAFile: ca,
	}}
}

func open(t *testing.T, c httpget.Config) *httpget.Handler {
	t.Helper()
	h, err := httpget.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// part compiles a member of the definition that is a schema.
func part(t *testing.T, name string) *schema.Schema {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(httpget.Definition), &members); err != nil {
		t.Fatal(err)
	}
	s, err := schema.Compile(members[name])
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return s
}

func get(t *testing.T, h *httpget.Handler, params map[string]any) (string, error) {
	t.Helper()
	encoded, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	result, err := h.Execute(t.Context(), encoded)
	if err == nil {
		if v := part(t, "returns").Validate(result); len(v) > 0 {
			t.Errorf("the result %s fails the definition: %v", result, v)
		}
	}
	return string(result), err
}

// The shape of the result does not depend on what the host sends, and JSON is passed on
// as the host wrote it, digits included.
func TestBody(t *testing.T) {
	for name, c := range map[string]struct{ contentType, body, want string }{
		"JSON":           {"application/json; charset=utf-8", ` {"n": 12345678901234567890.10} `, `{"n":12345678901234567890.10}`},
		"JSON by suffix": {"application/problem+json", `[1]`, `[1]`},
		"with a mark":    {"application/json", "\xef\xbb\xbf{}", `{}`},
		"broken JSON":    {"application/json", `{"n": }`, `"{\"n\": }"`},
		"two members":    {"application/json", `{"a":1,"a":2}`, `"{\"a\":1,\"a\":2}"`},
		"deep JSON":      {"application/json", strings.Repeat("[", 200) + strings.Repeat("]", 200), `"` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `"`},
		"text":           {"text/plain", "42", `"42"`},
		"latin 1":        {"text/plain; charset=ISO-8859-1", "gr\xfc\xdfe", `"grüße"`},
		"not UTF-8":      {"text/plain", "a\xffb", `"a�b"`},
		"NUL":            {"text/plain", "a\x00b", `"a\u0000b"`},
		"empty":          {"", "", `""`},
	} {
		t.Run(name, func(t *testing.T) {
			base, config := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Type"] = []string{c.contentType}
				w.Header()["X-Two"] = []string{"a", "b"}
				w.WriteHeader(http.StatusTeapot)
				fmt.Fprint(w, c.body)
			})
			got, err := get(t, open(t, config), map[string]any{"url": base})
			if err != nil {
				t.Fatal(err)
			}
			var result struct {
				Status  int
				Headers map[string]string
				Body    json.RawMessage
			}
			if err := json.Unmarshal([]byte(got), &result); err != nil {
				t.Fatal(err)
			}
			if result.Status != 418 || string(result.Body) != c.want || result.Headers["x-two"] != "a, b" {
				t.Errorf("got %s, want the body %s", got, c.want)
			}
		})
	}
}

func TestParameters(t *testing.T) {
	var header http.Header
	base, config := serve(t, func(_ http.ResponseWriter, r *http.Request) { header = r.Header })
	h := open(t, config)
	if _, err := get(t, h, map[string]any{"url": base, "headers": map[string]string{"X-Mine": "yes"}, "timeout": 60000.5}); err != nil || header.Get("X-Mine") != "yes" {
		t.Errorf("%v, %v", header, err)
	}
	parameters := part(t, "parameters")
	for name, params := range map[string]string{
		"no timeout":   `{"url": "` + base + `", "timeout": 0}`,
		"back in time": `{"url": "` + base + `", "timeout": -1}`,
		"text":         `{"url": "` + base + `", "timeout": "1"}`,
		"no URL":       `{}`,
		"headers":      `{"url": "` + base + `", "headers": {"a": 1}}`,
		"an array":     `[]`,
	} {
		if _, err := h.Execute(t.Context(), json.RawMessage(params)); failure.As(err) == nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(parameters.Validate([]byte(params))) == 0 {
			t.Errorf("%s: the definition accepts it", name)
		}
	}
}

// The definition is one that package action takes.
func TestDefinition(t *testing.T) {
	a, err := action.Parse([]byte(httpget.Definition))
	if err == nil {
		err = action.Check(a)
	}
	if err != nil || !a.Idempotent || a.Returns == nil {
		t.Errorf("%s: %v", a.ID, err)
	}
}

// The caller's timeout shortens the operator's, and never lengthens it.
func TestTimeout(t *testing.T) {
	base, config := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	start := time.Now()
	_, err := get(t, open(t, config), map[string]any{"url": base, "timeout": 50})
	if e := failure.As(err); e == nil || e.Code != failure.Timeout {
		t.Error(err)
	}
	config.TimeoutMs = 50
	_, err = get(t, open(t, config), map[string]any{"url": base, "timeout": 1e300})
	if e := failure.As(err); e == nil || e.Code != failure.Timeout {
		t.Error(err)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

// Pictures and programs are no use to whoever reads text, unless the operator lists them.
func TestContentTypes(t *testing.T) {
	base, config := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		fmt.Fprint(w, "x")
	})
	_, err := get(t, open(t, config), map[string]any{"url": base})
	if e := failure.As(err); e == nil || e.Code != failure.Unsupported {
		t.Error(err)
	}
	config.ContentTypes = []string{"application/octet-stream"}
	if _, err := get(t, open(t, config), map[string]any{"url": base}); err != nil {
		t.Error(err)
	}
}

// The secret stands in the request, and nowhere else.
func TestSecretByReference(t *testing.T) {
	const secret = "t0p-secret-value"
	base, config := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header.Get("Authorization")) })
	config.Credentials = []netguard.CredentialConfig{{Host: "127.0.0.1:*", Scheme: "Bearer", Secret: "env:TOKEN"}}
	config.Secret = func(ref string) (string, error) {
		if ref != "env:TOKEN" {
			return "", errors.New("environment variable is not set")
		}
		return secret, nil
	}
	got, err := get(t, open(t, config), map[string]any{"url": base})
	if err != nil || strings.Contains(got, secret) || !strings.Contains(got, "[redacted]") {
		t.Errorf("%s, %v", got, err)
	}
	config.Credentials[0].Secret = "env:OTHER"
	if _, err := httpget.New(config); err == nil || !strings.Contains(err.Error(), "not set") {
		t.Errorf("a reference that leads nowhere: %v", err)
	}
	config.Secret = nil
	if _, err := httpget.New(config); err == nil {
		t.Error("a reference that nothing resolves is accepted")
	}
}

func TestConfigIsRefused(t *testing.T) {
	noPEM := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(noPEM, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]netguard.Config{
		"no hosts":        {},
		"range":           {Hosts: []string{"a.test"}, AllowAddresses: []string{"10.0.0.1"}},
		"no such file":    {Hosts: []string{"a.test"}, CAFile: filepath.Join(t.TempDir(), "none")},
		"has no cert":     {Hosts: []string{"a.test"}, CAFile: noPEM},
		"without a schem": {Hosts: []string{"https://a.test"}},
	} {
		if _, err := httpget.New(httpget.Config{Config: c}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// The file's form of the configuration is what its schema says.
func TestConfigSchema(t *testing.T) {
	s, err := schema.Compile([]byte(netguard.ConfigSchema))
	if err != nil {
		t.Fatal(err)
	}
	full := `{"hosts": ["a.test"], "allowAddresses": ["10.0.0.0/8"], "contentTypes": ["text/*"], "caFile": "/ca.pem", "timeoutMs": 1000, "maxBytes": 1000,
		"maxRedirects": 0, "credentials": [{"host": "a.test", "header": "X-Key", "scheme": "Key", "secret": "env:A"}]}`
	if v := s.Validate([]byte(full)); len(v) > 0 {
		t.Error(v)
	}
	var c httpget.Config
	if err := json.Unmarshal([]byte(full), &c); err != nil || c.Credentials[0].Secret != "env:A" || *c.MaxRedirects != 0 {
		t.Errorf("%+v, %v", c, err)
	}
}

// No redirects means none.
func TestNoRedirects(t *testing.T) {
	base, config := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/there", http.StatusFound) })
	config.MaxRedirects = new(int)
	_, err := get(t, open(t, config), map[string]any{"url": base})
	if e := failure.As(err); e == nil || e.Code != failure.NotAllowed {
		t.Error(err)
	}
}
