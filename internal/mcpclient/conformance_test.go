package mcpclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/internal/mcpauth"
	"github.com/agentd/agentd/internal/mcpclient"
	"github.com/agentd/agentd/internal/netguard"
	"github.com/agentd/agentd/internal/npmtest"
	"github.com/agentd/agentd/internal/oauthtest"
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
			// One scenario measures how soon the client comes back, on a machine that may be busy.
			if i := slices.Index(failed, "sse-retry"); i >= 0 {
				again := npmtest.Conformance(t, "client", "--command", os.Args[0], "--scenario", "sse-retry", "--spec-version", revision)
				again.Env = append(again.Env, "MCP_TEST_SERVER=conformance")
				if err := again.Run(); err == nil {
					failed = slices.Delete(failed, i, i+1)
				}
			}
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
	if !strings.HasPrefix(scenario, "auth/") {
		return listAndCall(ctx, o, scenario)
	}
	logins, err := os.MkdirTemp("", "agentd-conformance")
	if err != nil {
		return err
	}
	defer os.RemoveAll(logins)
	access, login := accessOf(o, scenario, logins)
	o.URL.Auth = access
	// Somebody logs in when they are told to, and gives it up in the end.
	for range 3 {
		err = listAndCall(ctx, o, scenario)
		if denied := (*mcpauth.Error)(nil); login == nil || !errors.As(err, &denied) || denied.Kind != mcpauth.NeedsLogin && denied.Kind != mcpauth.NeedsScope {
			return err
		}
		if err := login(ctx); err != nil {
			return err
		}
	}
	return err
}

// accessOf is how the client of a scenario gets its tokens, and how somebody logs in, which is kept
// in a folder; nil where nobody has to.
func accessOf(o mcpclient.Options, scenario, logins string) (access mcpclient.Authorizer, login func(context.Context) error) {
	var given struct {
		ID        string `json:"client_id"`
		Secret    string `json:"client_secret"`
		Key       string `json:"private_key_pem"`
		Algorithm string `json:"signing_algorithm"`
		JWT       string `json:"valid_jwt"`
	}
	_ = json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &given) // most have none
	text := func(s string) func() (string, error) {
		if s == "" {
			return nil
		}
		return func() (string, error) { return s, nil }
	}
	c := mcpauth.Config{
		Name: o.Name, URL: o.URL.URL, Policy: o.URL.Policy,
		ClientID: given.ID, Secret: text(given.Secret), Key: text(given.Key), Algorithm: given.Algorithm, Assertion: text(given.JWT),
	}
	if strings.HasPrefix(scenario, "auth/client-credentials-") || scenario == "auth/wif-jwt-bearer" {
		return mcpauth.NewMachine(c), nil
	}
	if scenario == "auth/basic-cimd" {
		c.Document = "https://conformance-test.local/client-metadata.json"
	}
	store := mcpauth.Store{Dir: logins, Agent: "suite"}
	return mcpauth.NewPerson(c, store), func(ctx context.Context) error {
		probe := &mcpauth.Probe{}
		o.URL = &mcpclient.Endpoint{URL: o.URL.URL, Policy: o.URL.Policy, Auth: probe}
		_, err := mcpclient.List(ctx, o)
		if probe.Found() == nil {
			return fmt.Errorf("the server asks for no login: %w", err)
		}
		return c.Login(ctx, store, *probe.Found(), mcpauth.Interaction{Open: oauthtest.Browse})
	}
}

// listAndCall uses what a server has.
func listAndCall(ctx context.Context, o mcpclient.Options, scenario string) error {
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
		denied := (*mcpauth.Error)(nil)
		switch {
		case errors.As(err, &denied):
			return err
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
