package control_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon/control"
)

// openLog opens a log with one record for each of the given sessions.
func openLog(t *testing.T, sessions ...string) *auditchain.Log {
	t.Helper()
	log, err := auditchain.Open(t.Context(), filepath.Join(t.TempDir(), "audit.db"), auditchain.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	for i, session := range sessions {
		_, err := log.Append(t.Context(), auditchain.Record{
			Kind: auditchain.KindRPCCall, Session: session, Peer: "agent://p", Capability: "c", Tenant: "t",
			Side: auditchain.SideRequest, Correlation: fmt.Sprintf("c-%d", i), Body: json.RawMessage(`{"note":"hello"}`),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return log
}

// erased lists the records without content.
func erased(t *testing.T, log *auditchain.Log) []int64 {
	t.Helper()
	var seqs []int64
	for entry, err := range log.Query(t.Context(), auditchain.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if entry.Erased() {
			seqs = append(seqs, entry.Seq)
		}
	}
	report, err := log.Verify(t.Context(), auditchain.VerifyOptions{})
	if err != nil || !report.OK() {
		t.Errorf("the chain does not verify: %v, %+v", err, report)
	}
	return seqs
}

// Each condition of a filter reaches the log: one that got lost would erase
// records that were not meant.
func TestRedactSendsTheWholeFilter(t *testing.T) {
	log := openLog(t, "s-1", "s-2")
	c, _ := serve(t, control.Agent{Audit: log})
	all := auditchain.Filter{
		Kinds: []auditchain.Kind{auditchain.KindRPCCall}, Tenant: "t", Peer: "agent://p", Capability: "c", Side: auditchain.SideRequest,
		Correlation: "c-0", Session: "s-1", Since: time.Now().Add(-time.Hour), Until: time.Now().Add(time.Hour), Text: "hello",
	}
	for name, change := range map[string]func(*auditchain.Filter){
		"kinds":       func(f *auditchain.Filter) { f.Kinds = []auditchain.Kind{auditchain.KindLifecycle} },
		"tenant":      func(f *auditchain.Filter) { f.Tenant = "other" },
		"peer":        func(f *auditchain.Filter) { f.Peer = "agent://other" },
		"capability":  func(f *auditchain.Filter) { f.Capability = "other" },
		"side":        func(f *auditchain.Filter) { f.Side = auditchain.SideResponse },
		"correlation": func(f *auditchain.Filter) { f.Correlation = "other" },
		"session":     func(f *auditchain.Filter) { f.Session = "other" },
		"since":       func(f *auditchain.Filter) { f.Since = time.Now().Add(time.Hour) },
		"until":       func(f *auditchain.Filter) { f.Until = time.Now().Add(-time.Hour) },
		"text":        func(f *auditchain.Filter) { f.Text = "other" },
	} {
		f := all
		change(&f)
		if done, err := c.Redact(t.Context(), f, "test"); err != nil || done.Count != 0 {
			t.Errorf("with another %s: %+v, %v; want nothing erased", name, done, err)
		}
	}
	done, err := c.Redact(t.Context(), all, "asked to")
	if err != nil || done.Count != 1 || !slices.Equal(done.Records, []int64{3}) {
		t.Errorf("%+v, %v; want one record erased under record 3", done, err)
	}
	if got := erased(t, log); !slices.Equal(got, []int64{1}) {
		t.Errorf("erased %v, want record 1", got)
	}
}

func TestPruneAndRotateKey(t *testing.T) {
	log := openLog(t, "s-1", "s-2")
	c, _ := serve(t, control.Agent{Audit: log})
	key, err := c.RotateKey(t.Context())
	keys, listErr := log.PublicKeys()
	if err := errors.Join(err, listErr); err != nil || len(keys) != 2 || keys[1] != key {
		t.Errorf("new key %q, all keys %q, %v", key, keys, err)
	}
	if done, err := c.Prune(t.Context(), time.Now().Add(-time.Hour), "old"); err != nil || done.Count != 0 {
		t.Errorf("nothing is that old: %+v, %v", done, err)
	}
	done, err := c.Prune(t.Context(), time.Now().Add(time.Hour), "old")
	if err != nil || done.Count != 2 || len(done.Records) != 1 {
		t.Errorf("%+v, %v; want two records removed", done, err)
	}
	erased(t, log) // verifies
}

func TestRefusedAuditChanges(t *testing.T) {
	log := openLog(t, "s-1")
	c, s := serve(t, control.Agent{Audit: log})
	post := func(path, body string) (int, string) {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", s.Path())
		}}}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://agentd"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var text bytes.Buffer
		if _, err := text.ReadFrom(resp.Body); err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, text.String()
	}
	for _, test := range []struct{ name, path, body, says string }{
		{"no filter", "/v1/audit/redact", `{"match":{},"reason":"r"}`, "filter"},
		{"no reason", "/v1/audit/redact", `{"match":{"session":"s-1"}}`, "reason"},
		{"misspelt condition", "/v1/audit/redact", `{"match":{"session":"s-1","corelation":"c-9"},"reason":"r"}`, "corelation"},
		{"condition given twice", "/v1/audit/redact", `{"match":{"session":"s-9","session":"s-1"},"reason":"r"}`, "duplicate"},
		{"more after it", "/v1/audit/redact", `{"match":{"session":"s-1"},"reason":"r"}{}`, "understood"},
		{"unknown kind", "/v1/audit/redact", `{"match":{"kinds":["secrets"]},"reason":"r"}`, "secrets"},
		{"too large", "/v1/audit/redact", `{"match":{"text":"` + strings.Repeat("x", 64<<10) + `"},"reason":"r"}`, "larger than 64 KiB"},
		{"no time", "/v1/audit/prune", `{"reason":"r"}`, "time"},
		{"no such time", "/v1/audit/prune", `{"before":"yesterday","reason":"r"}`, "yesterday"},
		{"nothing", "/v1/audit/rotate-key", ``, "understood"},
	} {
		t.Run(test.name, func(t *testing.T) {
			status, body := post(test.path, test.body)
			want := http.StatusBadRequest
			if test.name == "too large" {
				want = http.StatusRequestEntityTooLarge
			}
			if status != want || !strings.Contains(body, `"code":"invalid"`) || !strings.Contains(body, test.says) {
				t.Errorf("status %d, body %s; want %d and %q", status, body, want, test.says)
			}
		})
	}
	if got := erased(t, log); got != nil {
		t.Errorf("a refused request has erased %v", got)
	}
	if entry, err := log.Get(t.Context(), 2); err == nil {
		t.Errorf("a refused request has left the record %+v", entry)
	}

	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := c.RotateKey(t.Context())
	if refused, ok := errors.AsType[*control.RefusedError](err); !ok || refused.Code != auditchain.CodeClosed.String() {
		t.Errorf("a closed log: %v", err)
	}
}

func TestAgentWithoutAuditLog(t *testing.T) {
	c, _ := serve(t, control.Agent{})
	_, err := c.Prune(t.Context(), time.Now(), "r")
	if refused, ok := errors.AsType[*control.RefusedError](err); !ok || refused.HTTPStatus != http.StatusNotFound {
		t.Errorf("error %v", err)
	}
}

// A client that leaves does not leave a half-done erasure behind.
func TestClientGoneDoesNotStopAnErasure(t *testing.T) {
	log := openLog(t, "s-1")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	request := httptest.NewRequestWithContext(gone, http.MethodPost, "/v1/audit/redact", strings.NewReader(`{"match":{"session":"s-1"},"reason":"r"}`))
	control.NewHandler(control.Agent{Audit: log}).ServeHTTP(httptest.NewRecorder(), request)
	if got := erased(t, log); !slices.Equal(got, []int64{1}) {
		t.Errorf("erased %v, want record 1", got)
	}
}
