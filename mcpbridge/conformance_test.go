package mcpbridge_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/internal/npmtest"
	"github.com/agentd/agentd/mcpbridge"
	"github.com/agentd/agentd/mcpbridge/mcphttp"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/schema"
)

// A fixture is the peer of testdata/conformance, whose capabilities have the names that the
// conformance suite calls.
type fixture struct {
	agent
	answers map[string]json.RawMessage
	bridge  *mcpbridge.Bridge
	waiting []chan struct{} // of calls that wait for an approval; guarded by mu
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join("testdata", "conformance", name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	f := &fixture{}
	if err := json.Unmarshal(read("answers.json"), &f.answers); err != nil {
		t.Fatal(err)
	}
	doc, err := capability.Parse("capabilities.yaml", read("capabilities.yaml"), capability.LoadOptions{ValidateSchemas: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range doc.Capabilities {
		f.callables = append(f.callables, mcpbridge.Callable{
			Address: doc.Agent, Capability: c, Asks: asksFor(c.Name),
		})
	}
	f.call = f.serve
	return f
}

// change is a reload that finds another contract.
func (f *fixture) change() {
	f.mu.Lock()
	last := len(f.callables) - 1
	changed := *f.callables[last].Capability
	changed.Description += " Again."
	f.callables = slices.Clone(f.callables)
	f.callables[last].Capability = &changed
	f.mu.Unlock()
	f.bridge.Changed()
}

// approver is somebody who approves all that waits once the client's person has answered, so
// that the suite sees an outcome. That it is not the answer which approves is another test's.
func (f *fixture) approver(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		var m struct {
			Result struct{ Action string }
			Params struct {
				InputResponses struct{ Approval struct{ Action string } }
			}
		}
		if json.Unmarshal(body, &m) == nil && (m.Result.Action == "accept" || m.Params.InputResponses.Approval.Action == "accept") {
			f.mu.Lock()
			for _, approved := range f.waiting {
				close(approved)
			}
			f.waiting = nil
			f.mu.Unlock()
		}
		next.ServeHTTP(w, r)
	})
}

// asksFor reports whether calls wait for a person.
func asksFor(name string) bool {
	return name == "test_elicitation" || strings.HasPrefix(name, "test_input_required_result_")
}

// serve answers as the peer would, its contracts checked at both ends.
func (f *fixture) serve(ctx context.Context, r rpc.Request) (*rpc.Result, error) {
	var c *capability.Capability
	all, _ := f.Callables(mcpbridge.Client{})
	for _, have := range all {
		if have.Capability.Name == r.Capability {
			c = have.Capability
		}
	}
	if c.Input != nil {
		if report := c.Input.Schema.Check(r.Payload); report.Verdict == schema.Invalid {
			e := &rpc.Error{Code: rpc.CodeSchemaViolation, Side: rpc.SideRequest, Violations: report.Violations, Message: "the payload does not fit"}
			return &rpc.Result{Status: rpc.StatusSchemaViolation, Error: e}, e
		}
	}
	response := f.answers[r.Capability]
	switch r.Capability {
	case "test_error_handling":
		e := rpc.NewError(rpc.CodeHandlerError, nil, "this capability fails whenever it is called")
		return &rpc.Result{Status: rpc.StatusError, Error: e}, e
	case "test_tool_with_progress", "test_streaming_elicitation":
		for i, progress := range []int{0, 50, 100} {
			r.OnProgress(rpc.ProgressEvent{Seq: i + 1, Attempt: 1, Value: fmt.Appendf(nil, `{"progress":%d,"total":100}`, progress)})
		}
	case "test_trigger_tool_change":
		f.change()
	}
	if asksFor(r.Capability) {
		approved := make(chan struct{})
		f.mu.Lock()
		f.waiting = append(f.waiting, approved)
		f.mu.Unlock()
		r.OnWait(rpc.ApprovalWait{ID: "019aa8f4", Until: time.Now().Add(time.Hour)})
		select {
		case <-approved:
		case <-ctx.Done():
		}
	}
	if response == nil {
		response = json.RawMessage(`{"done":true}`)
	}
	if c.Output != nil {
		if report := c.Output.Schema.Check(response); report.Verdict == schema.Invalid {
			return nil, fmt.Errorf("the fixture answers %s with %s", r.Capability, response)
		}
	}
	return &rpc.Result{Status: rpc.StatusOK, CorrelationID: "c-1", Response: response}, nil
}

// The suite of the protocol's project, against a peer through the bridge and over HTTP: all
// that either revision requires, but for the checks that testdata/conformance lists with their
// reasons. A check that is listed and passes fails the suite too.
func TestConformance(t *testing.T) {
	for _, revision := range []string{era2025, era2026} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			expected, err := filepath.Abs(filepath.Join("testdata", "conformance", revision+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			fixture := newFixture(t)
			bridge := open(t, fixture, mcpbridge.Options{Bare: true})
			fixture.bridge = bridge
			log := slog.New(slog.DiscardHandler)
			handler, err := mcphttp.New(mcphttp.Config{
				Server: func(client string) (*mcp.Server, error) { return bridge.Server(mcpbridge.Client{Name: client}) },
				Auth:   mcphttp.Auth{Anonymous: "suite"}, // it has no option for a token
				Logger: log,
			})
			if err != nil {
				t.Fatal(err)
			}
			server := httptest.NewUnstartedServer(nil)
			server.Config = mcphttp.NewServer(fixture.approver(handler), log)
			server.Start()
			defer server.Close()
			defer handler.Close(context.Background())
			out, err := npmtest.Conformance(t, "server", "--url", server.URL+"/mcp", "--requirements", revision, "--expected-failures", expected).CombinedOutput()
			if err != nil {
				t.Errorf("%v:\n%s", err, out)
			}
			if testing.Verbose() {
				t.Logf("%s", out)
			}
		})
	}
}
