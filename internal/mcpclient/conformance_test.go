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
	"slices"
	"testing"
	"time"

	"github.com/agentd/agentd/internal/mcpclient"
	"github.com/agentd/agentd/internal/netguard"
	"github.com/agentd/agentd/internal/npmtest"
)

// The suite of the protocol's project, against this client: all that either revision requires
// of clients, but for the scenarios that testdata/conformance.txt lists with their reasons.
func TestConformance(t *testing.T) {
	for _, revision := range []string{mcpclient.Era2025, mcpclient.Era2026} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			// The suite starts the client with the URL of its server as the argument, and
			// names the scenario in the environment.
			cmd := npmtest.Conformance(t, "client", "--command", os.Args[0], "--requirements", revision)
			cmd.Env = append(cmd.Env, "MCP_TEST_SERVER=conformance")
			out, _ := cmd.CombinedOutput() // which scenarios may fail is judged here
			passed, failed := npmtest.Scenarios(string(out))
			if want := npmtest.Listed(t, "testdata/conformance.txt", revision); len(passed) < 3 || !slices.Equal(failed, want) {
				t.Errorf("passed: %q\nfailed: %q\nlisted: %q\n%s", passed, failed, want, out)
			}
		})
	}
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
