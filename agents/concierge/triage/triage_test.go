package triage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agentd/agentd/codegen/typed"
	"github.com/agentd/agentd/skill/sdk"
)

// A fleet stands for the control API: it answers requests by capability over a
// real socket and notes what was asked.
type fleet struct {
	mu      sync.Mutex
	replies map[string]string // capability, or capability and query -> result JSON; "" hangs up
	asked   []string
}

func (f *fleet) serve(t *testing.T) context.Context {
	t.Helper()
	dir, err := os.MkdirTemp("", "triage") // shorter than t.TempDir, for the socket's sake
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(f.answer)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		server.Close()
		<-done
	})
	return sdk.WithEnvironment(t.Context(), sdk.Environment{Socket: socket})
}

func (f *fleet) answer(w http.ResponseWriter, r *http.Request) {
	var req struct {
		To, Capability string
		Payload        json.RawMessage
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	f.asked = append(f.asked, fmt.Sprintf("%s/%s %s", req.To, req.Capability, req.Payload))
	f.mu.Unlock()
	var payload struct{ Query string }
	_ = json.Unmarshal(req.Payload, &payload)
	reply, ok := f.replies[req.Capability+" "+payload.Query]
	if !ok {
		reply = f.replies[req.Capability]
	}
	if reply == "" {
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write([]byte(reply))
}

// calls returns what was asked so far, sorted.
func (f *fleet) calls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(slices.Values(f.asked))
}

func ok(response string) string {
	return `{"status":"ok","correlationId":"c","latencyMs":1,"response":` + response + `}`
}

func failed(status, code, message string, retryable bool) string {
	return fmt.Sprintf(`{"status":%q,"correlationId":"c","latencyMs":1,"error":{"code":%q,"message":%q,"retryable":%t}}`, status, code, message, retryable)
}

const (
	review2 = `{"verdict":"request-changes","summary":"2 findings.","findings":[
		{"file":"a.ts","line":9,"severity":"high","message":"A key.","rule":"leaked-key"},
		{"file":"a.ts","line":0,"severity":"low","message":"A wish.","rule":"todo-no-owner"}]}`
	cleanReview = `{"verdict":"approve","summary":"No findings.","findings":[]}`
	keyNote     = `{"title":"Secrets","path":"n/secrets.md","line":7,"excerpt":"Revoke it.","score":5}`
	todoNote    = `{"title":"TODO","path":"n/todo.md","line":5,"excerpt":"Name a person.","score":4}`
)

func TestTriage(t *testing.T) {
	f := &fleet{replies: map[string]string{
		"review-pr":                  ok(review2),
		"search-notes leaked-key":    ok(`{"results":[` + keyNote + `]}`),
		"search-notes todo-no-owner": ok(`{"results":[` + todoNote + `]}`),
	}}
	got, err := Triage(f.serve(t), sdk.Caller(), Input{PRURL: "https://x/1"})
	if err != nil {
		t.Fatal(err)
	}
	want := Answer{
		Priority: P1, Verdict: "request-changes", Owner: "security",
		Reasons: []string{"a.ts:9 (leaked-key, high): A key.", "a.ts (todo-no-owner, low): A wish."},
		Notes:   []Note{{"Secrets", "n/secrets.md", 7, "Revoke it."}, {"TODO", "n/todo.md", 5, "Name a person."}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	asked := []string{
		`agent://librarian/search-notes {"query":"leaked-key","limit":1}`,
		`agent://librarian/search-notes {"query":"todo-no-owner","limit":1}`,
		`agent://pr-reviewer/review-pr {"prUrl":"https://x/1","severity":"low"}`,
	}
	if got := f.calls(); !slices.Equal(got, asked) {
		t.Errorf("asked %q\nwant  %q", got, asked)
	}
}

func TestTriageCleanAsksNoNotes(t *testing.T) {
	f := &fleet{replies: map[string]string{"review-pr": ok(cleanReview)}}
	got, err := Triage(f.serve(t), sdk.Caller(), Input{PRURL: "https://x/1"})
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(got)
	const want = `{"priority":"p3","verdict":"approve","reasons":["The reviewer objects to nothing."],"notes":[]}`
	if string(text) != want || len(f.calls()) != 1 {
		t.Errorf("got  %s after %q\nwant %s", text, f.calls(), want)
	}
}

func TestTriageWithoutNotes(t *testing.T) {
	tests := []struct{ name, notes, want string }{
		{"timeout", failed("timeout", "EAGENTRPC_TIMEOUT", "late", true), "(EAGENTRPC_TIMEOUT)"},
		{"no peer", failed("error", "EAGENTRPC_NO_PEER", "no librarian", false), "(EAGENTRPC_NO_PEER)"},
		{"abandoned, no code", `{"status":"abandoned","correlationId":"c","latencyMs":1}`, "(abandoned)"},
		{"hung up", "", "(no usable answer)"},
		{"strange response", ok(`[]`), "(no usable answer)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := &fleet{replies: map[string]string{
				"review-pr":               ok(review2),
				"search-notes leaked-key": ok(`{"results":[` + keyNote + `]}`),
				"search-notes":            tt.notes,
			}}
			got, err := Triage(f.serve(t), sdk.Caller(), Input{})
			if err != nil {
				t.Fatal(err)
			}
			last := got.Reasons[len(got.Reasons)-1]
			if got.Priority != P1 || len(got.Notes) != 1 || !strings.Contains(last, "notes are missing") || !strings.Contains(last, tt.want) {
				t.Errorf("got %+v, want the review, the note that came, and %q", got, tt.want)
			}
		})
	}
}

func TestTriageWithoutReview(t *testing.T) {
	tests := []struct {
		name, review, want string
		retryable          bool
	}{
		{"the reviewer's own words", failed("error", "HANDLER_ERROR", "prUrl needs a scheme", false),
			"the pull request could not be reviewed (HANDLER_ERROR): prUrl needs a scheme", false},
		{"timeout", failed("timeout", "EAGENTRPC_TIMEOUT", "agent-rpc timed out", true),
			"the pull request could not be reviewed (EAGENTRPC_TIMEOUT)", true},
		{"violation", failed("schema-violation", "EAGENTRPC_SCHEMA_VIOLATION", "internal detail", false),
			"the pull request could not be reviewed (EAGENTRPC_SCHEMA_VIOLATION)", false},
		{"hung up", "", "the pull request could not be reviewed (no usable answer)", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := &fleet{replies: map[string]string{"review-pr": tt.review}}
			_, err := Triage(f.serve(t), sdk.Caller(), Input{})
			var public *sdk.PublicError
			if !errors.As(err, &public) || public.Message != tt.want || public.Retryable != tt.retryable || public.Cause == nil {
				t.Errorf("got %+v (%v)\nwant %q, retryable %t", public, err, tt.want, tt.retryable)
			}
			if calls := f.calls(); len(calls) != 1 {
				t.Errorf("asked %q after a failed review", calls)
			}
		})
	}
}

func TestTriageCancelled(t *testing.T) {
	for _, at := range []string{"review-pr", "search-notes"} {
		t.Run("during "+at, func(t *testing.T) {
			f := &fleet{replies: map[string]string{"review-pr": ok(review2)}}
			ctx, cancel := context.WithCancel(f.serve(t))
			defer cancel()
			_, err := Triage(ctx, typed.CallerFunc(func(ctx context.Context, c typed.Call) (json.RawMessage, error) {
				if c.Capability == at {
					cancel()
				}
				return sdk.Caller().Call(ctx, c)
			}), Input{})
			var public *sdk.PublicError
			if !errors.Is(err, context.Canceled) || errors.As(err, &public) {
				t.Errorf("got %v, want the context's error and nothing for a caller who is gone", err)
			}
		})
	}
}

func TestPrioritise(t *testing.T) {
	finding := func(severity severity, rule string) Finding {
		return Finding{File: "a", Line: 1, Severity: severity, Rule: rule, Message: "m"}
	}
	tests := []struct {
		title    string
		findings []Finding
		priority Priority
		owner    string
	}{
		{"", nil, P3, ""},
		{"Tidy up", []Finding{finding("low", "todo-no-owner")}, P3, ""},
		{"", []Finding{finding("low", "huge-hunk"), finding("med", "removed-test")}, P2, "quality"},
		{"", []Finding{finding("med", "debug-print")}, P2, ""},
		{"", []Finding{finding("high", "conflict-marker"), finding("med", "removed-test")}, P1, "quality"},
		{"", []Finding{finding("med", "removed-test"), finding("high", "tls-verify-off")}, P1, "security"},
		{"hotfix: login", nil, P2, ""},
		{"Revert \"Faster login\"", []Finding{finding("med", "debug-print")}, P1, ""},
		{"SECURITY", []Finding{finding("high", "leaked-key")}, P1, "security"},
		{"Hotfixes explained", nil, P3, ""},
	}
	for _, tt := range tests {
		priority, reasons := prioritise(tt.title, Review{Findings: tt.findings})
		if got := owner(tt.findings); priority != tt.priority || got != tt.owner || len(reasons) == 0 {
			t.Errorf("%q, %+v: got %s, %q, %q; want %s, %q", tt.title, tt.findings, priority, got, reasons, tt.priority, tt.owner)
		}
	}
}

func TestReasonsAreBounded(t *testing.T) {
	findings := slices.Repeat([]Finding{{File: "a", Severity: "high", Rule: "r", Message: "m"}}, 200)
	_, reasons := prioritise("hotfix", Review{Findings: findings})
	if len(reasons) != maxReasons+2 || reasons[len(reasons)-1] != "There are 192 more findings." {
		t.Errorf("%d reasons, the last is %q", len(reasons), reasons[len(reasons)-1])
	}
}

func TestNoteRules(t *testing.T) {
	var findings []Finding
	for _, rule := range []string{"a", "a", "b", "a", "c", "d"} {
		findings = append(findings, Finding{Rule: rule})
	}
	if got := noteRules(findings); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("got %q", got)
	}
}
