package mcpclient_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/internal/mcpclient"
	"github.com/agentd/agentd/internal/netguard"
)

// The suite of the protocol's project, against this client: all that either revision requires
// of clients, but for the scenarios that testdata/conformance.txt lists with their reasons.
func TestConformance(t *testing.T) {
	modules := os.Getenv("AGENTD_NODE_MODULES")
	node, suite := filepath.Join(modules, "node", "bin", "node"), filepath.Join(modules, "@modelcontextprotocol/conformance/dist/index.js")
	for _, file := range []string{node, suite} {
		if _, err := os.Stat(file); modules == "" || err != nil {
			t.Skip("AGENTD_NODE_MODULES does not lead to the conformance suite and its Node.js: .ci/run installs them")
		}
	}
	for _, revision := range []string{mcpclient.Era2025, mcpclient.Era2026} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			// The suite starts the client with the URL of its server as the argument, and
			// names the scenario in the environment.
			cmd := exec.CommandContext(t.Context(), node, suite, "client", "--command", os.Args[0], "--requirements", revision, "-o", "out")
			cmd.Dir = t.TempDir()
			cmd.Env = append(os.Environ(), "HOME="+cmd.Dir, "MCP_TEST_SERVER=conformance")
			out, _ := cmd.CombinedOutput() // which scenarios may fail is judged here
			passed, failed := scenarios(string(out))
			if want := listed(t, revision); len(passed) < 3 || !slices.Equal(failed, want) {
				t.Errorf("passed: %q\nfailed: %q\nlisted: %q\n%s", passed, failed, want, out)
			}
		})
	}
}

// scenarios returns the scenarios of the suite's report.
func scenarios(report string) (passed, failed []string) {
	for _, m := range regexp.MustCompile(`(?m)^\s*([✓✗]) ([a-z0-9_/-]+): \d+ passed, \d+ failed`).FindAllStringSubmatch(report, -1) {
		if m[1] == "✓" {
			passed = append(passed, m[2])
		} else {
			failed = append(failed, m[2])
		}
	}
	slices.Sort(failed)
	return passed, slices.Compact(failed)
}

// listed returns the scenarios that do not apply to a revision.
func listed(t *testing.T, revision string) (names []string) {
	t.Helper()
	data, err := os.ReadFile("testdata/conformance.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) > 2 && strings.Contains(fields[0], revision) {
			names = append(names, strings.TrimSuffix(fields[1], ":"))
		}
	}
	slices.Sort(names)
	return names
}

// conformanceClient is the program that the suite tests: it lists what a server has, as
// `agentd capabilities import-mcp` does, and calls it as a capability behind an agent does.
func conformanceClient() {
	if err := useEverything(os.Args[len(os.Args)-1], os.Getenv("MCP_CONFORMANCE_SCENARIO")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func useEverything(server, scenario string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	u, err := url.Parse(server)
	if err != nil {
		return err
	}
	o := mcpclient.Options{
		Name: "suite", Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		URL: &mcpclient.Endpoint{URL: server, Policy: func() (netguard.Policy, error) {
			return netguard.Policy{Hosts: []string{u.Host}, AllowAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}, nil
		}},
	}
	listing, err := mcpclient.List(ctx, o)
	if err != nil {
		return err
	}
	o.Pinned = listing.Tools
	changed := make(chan struct{}, 1)
	o.Changed = func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	client, err := mcpclient.New(o)
	if err != nil {
		return err
	}
	client.Start()
	defer client.Close()
	for !client.State().Connected {
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for _, c := range callsOf(listing, scenario) {
		result, err := client.Call(ctx, mcpclient.Request{Tool: c.Name, Arguments: c.Arguments})
		switch {
		case err != nil:
			fmt.Fprintln(os.Stderr, c.Name, err) // some tools are there to be refused
		case result != nil:
			fmt.Fprintln(os.Stderr, c.Name, string(result.Raw))
		}
	}
	return nil
}

type plannedCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// callsOf returns the calls of a scenario: those that the suite names, else one of each tool.
func callsOf(l *mcpclient.Listing, scenario string) (calls []plannedCall) {
	var named struct {
		Calls []plannedCall `json:"toolCalls"`
	}
	if json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &named) == nil && named.Calls != nil {
		return named.Calls
	}
	for _, tool := range l.Tools {
		args := json.RawMessage(`{}`)
		switch {
		case tool.Name == "add_numbers":
			args = json.RawMessage(`{"a":5,"b":3}`)
		case tool.Name == "json_schema_echo":
			for _, focal := range l.Tools {
				if focal.Name == "json_schema_2020_12_tool" {
					args = json.RawMessage(`{"schema":` + string(focal.InputSchema) + `}`)
				}
			}
		case scenario == "http-invalid-tool-headers":
			args = json.RawMessage(`{"region":"us-west1"}`)
		}
		calls = append(calls, plannedCall{tool.Name, args})
	}
	return calls
}
