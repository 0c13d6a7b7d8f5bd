// Package agents_test holds the sample fleet to its word: its files load clean,
// and what its skills answer meets the schemas that they declare.
package agents_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/skill/sdk"
)

func loadFleet(t *testing.T) *fleet.Fleet {
	t.Helper()
	f, err := fleet.Load("..", fleet.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFleetIsClean(t *testing.T) {
	f := loadFleet(t)
	for _, finding := range f.Lint() {
		t.Errorf("%+v: %s %s", finding.Position, finding.Code, finding.Message)
	}
	var ids []string
	for _, m := range f.Members {
		ids = append(ids, m.ID)
		if len(m.Peers) != len(f.Members) {
			t.Errorf("%s knows %d peers, want %d", m.ID, len(m.Peers), len(f.Members))
		}
		for _, c := range m.Capabilities.Capabilities {
			if c.Input == nil || c.Output == nil {
				t.Errorf("%s/%s has no schema on one side", m.ID, c.Name)
			}
			if _, ok := m.Agent.Skill(c.Skill); !ok {
				t.Errorf("%s/%s has no skill", m.ID, c.Name)
			}
		}
	}
	if want := []string{"concierge", "pr-reviewer", "librarian"}; !slices.Equal(ids, want) {
		t.Errorf("members %q, want %q", ids, want)
	}
}

// The contract of review-pr is the documented example, plus findings.
func TestReviewContract(t *testing.T) {
	m, _ := loadFleet(t).Member("pr-reviewer")
	c, ok := m.Capabilities.Lookup("review-pr")
	if !ok {
		t.Fatal("there is no review-pr")
	}
	if c.Timeout != time.Minute || !c.Idempotent || c.Since != "1.1.0" {
		t.Errorf("timeout %s, idempotent %t, since %q", c.Timeout, c.Idempotent, c.Since)
	}
	input := map[string][]schema.Violation{
		`{"prUrl":"https://github.com/o/r/pull/1","severity":"low"}`: nil,
		`{"prUrl":"x","severity":"critical"}`:                        {{Path: "/severity"}},
		`{"prUrl":"x"}`:                                              {{Path: "/severity"}},
		`{"prUrl":1,"severity":"low","more":1}`:                      {{Path: "/prUrl"}, {Path: "/more"}},
	}
	output := map[string][]schema.Violation{
		`{"verdict":"approve","summary":""}`:                                 nil,
		`{"verdict":"comment","summary":"","findings":[]}`:                   nil,
		`{"verdict":"reject","summary":""}`:                                  {{Path: "/verdict"}},
		`{"verdict":"approve"}`:                                              {{Path: "/summary"}},
		`{"verdict":"approve","summary":"","findings":[{"file":"a"}]}`:       {{Path: "/findings/0/line"}, {Path: "/findings/0/severity"}, {Path: "/findings/0/message"}, {Path: "/findings/0/rule"}},
		`{"verdict":"approve","summary":"","findings":[1],"more":"is fine"}`: {{Path: "/findings/0"}},
	}
	check := func(side string, s *schema.Schema, cases map[string][]schema.Violation) {
		for doc, want := range cases {
			got := s.Validate([]byte(doc))
			if !slices.EqualFunc(got, want, func(a, b schema.Violation) bool { return a.Path == b.Path }) {
				t.Errorf("%s %s: %v, want faults at %v", side, doc, got, want)
			}
		}
	}
	check("input", c.Input.Schema, input)
	check("output", c.Output.Schema, output)
}

// A runner is the least that can run the fleet: the skills as child processes
// behind a control API, each payload and each result held to its schema.
type runner struct {
	t     *testing.T
	fleet *fleet.Fleet
	bin   string // folder of the built skills
	sock  string // of the control API
}

const callToken = "the-running-call"

func startRunner(t *testing.T) *runner {
	t.Helper()
	r := &runner{t: t, fleet: loadFleet(t), bin: t.TempDir()}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", r.bin+string(filepath.Separator), "./concierge", "./pr-reviewer", "./librarian")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	dir, err := os.MkdirTemp("", "agents") // shorter than t.TempDir, for the socket's sake
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	r.sock = filepath.Join(dir, "s")
	listener, err := net.Listen("unix", r.sock)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(r.serve)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		server.Close()
		<-done
	})
	return r
}

// serve answers POST /v1/request.
func (r *runner) serve(w http.ResponseWriter, req *http.Request) {
	var body struct {
		To, Capability string
		Payload        json.RawMessage
	}
	if token := req.Header.Get(sdk.CallHeader); token != callToken {
		r.t.Errorf("a nested call carries the token %q", token)
	}
	if err := json.NewDecoder(req.Body).Decode(&body); err != nil {
		r.t.Error(err)
	}
	result := map[string]any{"status": "ok", "correlationId": "c", "latencyMs": 0.5}
	response, err := r.call(req.Context(), strings.TrimPrefix(body.To, "agent://"), body.Capability, string(body.Payload))
	if err != nil {
		result["status"] = "error"
		result["error"] = map[string]any{"code": "HANDLER_ERROR", "message": err.Error(), "retryable": false}
	} else {
		result["response"] = json.RawMessage(response)
	}
	_ = json.NewEncoder(w).Encode(result)
}

// call runs a skill as agentd does. The error is the skill's public one.
func (r *runner) call(ctx context.Context, agent, name, payload string) (string, error) {
	m, ok := r.fleet.Member(agent)
	if !ok {
		return "", fmt.Errorf("no agent %s", agent)
	}
	c, ok := m.Capabilities.Lookup(name)
	if !ok {
		return "", fmt.Errorf("no capability %s", name)
	}
	if faults := c.Input.Check([]byte(payload)).Violations; len(faults) > 0 {
		r.t.Errorf("%s: the payload %s breaks the input schema: %v", name, payload, faults)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(r.bin, agent))
	cmd.Dir = r.fleet.Root
	cmd.Env = []string{
		sdk.EnvSocket + "=" + r.sock, sdk.EnvCall + "=" + callToken, sdk.EnvFleetRoot + "=" + r.fleet.Root,
		sdk.EnvAgent + "=" + string(m.Address), sdk.EnvCapability + "=" + name,
		sdk.EnvDeadline + "=" + strconv.FormatInt(time.Now().Add(time.Minute).UnixMilli(), 10),
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(payload), &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		var public struct{ Error struct{ Message string } }
		if json.Unmarshal(stdout.Bytes(), &public) != nil || public.Error.Message == "" {
			return "", fmt.Errorf("private failure: %s", stderr.String())
		}
		return "", errors.New(public.Error.Message)
	case err != nil:
		return "", err
	}
	if report := c.Output.Check(bytes.TrimSpace(stdout.Bytes())); report.Verdict != schema.Valid {
		r.t.Errorf("%s: the result %s breaks the output schema: %v %v", name, &stdout, report.Violations, report.Syntax)
	}
	return stdout.String(), nil
}

func TestSkills(t *testing.T) {
	r := startRunner(t)
	t.Run("answers", func(t *testing.T) { testAnswers(t, r) })
	t.Run("failures", func(t *testing.T) { testFailures(t, r) })
}

func testAnswers(t *testing.T, r *runner) {
	reviewOf := func(patch, severity string) string {
		return fmt.Sprintf(`{"prUrl":"file:agents/pr-reviewer/patches/%s","severity":%q}`, patch, severity)
	}
	triageOf := func(patch, title string) string {
		return fmt.Sprintf(`{"prUrl":"file:agents/pr-reviewer/patches/%s","title":%q}`, patch, title)
	}
	tests := []struct {
		agent, capability, payload string
		want                       []string
	}{
		{"pr-reviewer", "review-pr", reviewOf("limit-uploads.patch", "low"), []string{`"verdict":"approve"`, `"findings":[]`}},
		{"pr-reviewer", "review-pr", reviewOf("invoice-export.patch", "low"), []string{`"verdict":"request-changes"`, `"leaked-key"`, `"todo-no-owner"`}},
		{"pr-reviewer", "review-pr", reviewOf("country-table.patch", "high"), []string{`"verdict":"request-changes"`, `1 high, 0 med, 0 low`}},
		{"librarian", "search-notes", `{"query":"who do I call about a leaked key"}`, []string{`"path":"agents/librarian/notes/`, `leaked`}},
		{"librarian", "search-notes", `{"query":"zebra","limit":1}`, []string{`{"results":[]}`}},
		{"concierge", "triage-pr", triageOf("limit-uploads.patch", ""), []string{`"priority":"p3"`, `"verdict":"approve"`, `"notes":[]`}},
		{"concierge", "triage-pr", triageOf("invoice-export.patch", "Export invoices"),
			[]string{`"priority":"p1"`, `"owner":"security"`, `(leaked-key)`, `(debug-print)`, `(todo-no-owner)`}},
		{"concierge", "triage-pr", triageOf("country-table.patch", "hotfix: rates"),
			[]string{`"priority":"p1"`, `"owner":"quality"`, `The title says`, `(conflict-marker)`, `(removed-test)`, `(huge-hunk)`}},
	}
	for _, tt := range tests {
		t.Run(tt.capability+" "+tt.payload, func(t *testing.T) {
			got, err := r.call(t.Context(), tt.agent, tt.capability, tt.payload)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("got %s\nwant it to hold %s", got, want)
				}
			}
		})
	}
}

func testFailures(t *testing.T, r *runner) {
	tests := []struct{ agent, capability, payload, want string }{
		{"pr-reviewer", "review-pr", `{"prUrl":"file:agents/none.patch","severity":"low"}`, "there is no file agents/none.patch"},
		{"pr-reviewer", "review-pr", `{"prUrl":"file:../outside.patch","severity":"low"}`, "there is no file ../outside.patch in the fleet's folder"},
		{"pr-reviewer", "review-pr", `{"prUrl":"gopher://x","severity":"low"}`, "prUrl is neither https://github.com/"},
		{"pr-reviewer", "review-pr", `{"prUrl":"http://127.0.0.1:1/x.diff","severity":"low"}`, "prUrl is neither https://github.com/"},
		{"concierge", "triage-pr", `{"prUrl":"file:agents/none.patch"}`,
			"the pull request could not be reviewed (HANDLER_ERROR): there is no file agents/none.patch in the fleet's folder"},
	}
	for _, tt := range tests {
		t.Run(tt.capability+" "+tt.payload, func(t *testing.T) {
			if got, err := r.call(t.Context(), tt.agent, tt.capability, tt.payload); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %q, %v; want the error %q", got, err, tt.want)
			}
		})
	}
}
