package mcplogin

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/mcpaccess"
	"github.com/agentd/agentd/internal/mcpauth"
	"github.com/agentd/agentd/internal/mcpclient"
	"github.com/agentd/agentd/internal/mcptool"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/internal/secretref"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/external"
)

// DefaultTimeout is how long somebody may take to log in.
const DefaultTimeout = 10 * time.Minute

// A Request is one `agentd mcp login` or `agentd mcp logout`.
type Request struct {
	// Agent is the agent's id, Server what its agent.yaml calls the server.
	Agent, Server string
	// NoBrowser opens none.
	NoBrowser bool
	// Timeout bounds the login; 0 is the default.
	Timeout time.Duration
	// Open opens a page in place of a browser, or is nil.
	Open func(url string) error
}

// result is what has been done, for -o json.
type result struct {
	Agent  string `json:"agent"`
	Server string `json:"server"`
	mcpauth.LoginState
	Tools int `json:"tools"`
}

// A target is a server with the logins of an agent.
type target struct {
	name   string
	at     *mcpclient.Endpoint
	config mcpauth.Config
	store  mcpauth.Store
	port   int
}

// Login has somebody log in at a server, and shows that the server is then of use.
func Login(ctx context.Context, env *cli.Env, r Request) error {
	t, err := find(ctx, env, r)
	if err != nil {
		return err
	}
	if r.Timeout <= 0 {
		r.Timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.Timeout, fmt.Errorf("nobody has logged in within %s", r.Timeout))
	defer cancel()
	probe := &mcpauth.Probe{}
	_, err = t.list(ctx, probe)
	switch {
	case probe.Found() != nil:
	case err != nil:
		return fmt.Errorf("the MCP server %s: %w", t.name, err)
	default:
		return fmt.Errorf("the MCP server %s asks nobody for a login: remove oauth from its entry", t.name)
	}
	open := func(page string) error {
		fmt.Fprintf(env.Stderr, "Log in here:\n\n  %s\n\n", page)
		if r.Open != nil {
			return r.Open(page)
		}
		if !r.NoBrowser {
			browse(env, page)
		}
		return nil
	}
	if err := t.config.Login(ctx, t.store, *probe.Found(), mcpauth.Interaction{Port: t.port, Open: open}); err != nil {
		return err
	}
	tools, err := t.list(ctx, mcpauth.NewPerson(t.config, t.store))
	if err != nil {
		return fmt.Errorf("somebody is logged in, and the MCP server %s cannot be used all the same: %w", t.name, err)
	}
	state, err := t.config.LoginState(t.store)
	if err != nil {
		return err
	}
	if env.Format != output.Table {
		return env.WriteJSON(result{r.Agent, t.name, *state, len(tools)})
	}
	lasts := "until " + state.Expires.Local().Format(time.DateTime)
	switch {
	case state.Renewable:
		lasts = "until its authorization server ends it"
	case state.Expires.IsZero():
		lasts = "for as long as the server takes it"
	}
	_, err = fmt.Fprintf(env.Stdout, "%s is logged in at %s (%s), %s; the server has %d tools\n", r.Agent, t.name, output.Printable(state.Issuer), lasts, len(tools))
	return err
}

// Logout forgets the login at a server.
func Logout(ctx context.Context, env *cli.Env, r Request) error {
	t, err := find(ctx, env, r)
	if err != nil {
		return err
	}
	found, err := t.config.Logout(ctx, t.store)
	switch {
	case !found && err != nil:
		return err
	case !found:
		return fmt.Errorf("nobody is logged in at %s", t.name)
	case err != nil:
		fmt.Fprintf(env.Stderr, "the login is forgotten here; its authorization server does not know: %v\n", err)
	}
	_, err = fmt.Fprintf(env.Stdout, "%s is logged out at %s\n", r.Agent, t.name)
	return err
}

// list connects once.
func (t *target) list(ctx context.Context, auth mcpclient.Authorizer) ([]mcpclient.Contract, error) {
	listing, err := mcpclient.List(ctx, mcpclient.Options{Name: t.name, URL: &mcpclient.Endpoint{URL: t.at.URL, Policy: t.at.Policy, Auth: auth}})
	if err != nil {
		return nil, err
	}
	return listing.Tools, nil
}

// find finds a server of an agent, as a backend of its skills or as one of its capabilities.
func find(ctx context.Context, env *cli.Env, r Request) (*target, error) {
	f, paths, err := env.InspectFleet()
	if err != nil {
		return nil, err
	}
	m, ok := f.Member(r.Agent)
	if !ok {
		return nil, fmt.Errorf("the fleet has no agent %q", r.Agent)
	}
	variables, err := f.EnvFileVariables(m)
	if err != nil {
		return nil, err
	}
	getenv := func(name string) string {
		if value := env.Getenv(name); value != "" {
			return value
		}
		for _, v := range variables {
			if v.Name == name {
				return v.Value
			}
		}
		return ""
	}
	resolve := func(ref string) (string, error) { return secretref.Resolve(ref, getenv) }
	var found []*mcpclient.Endpoint
	var how *fleet.MCPAuth
	if s, ok := m.Agent.MCPServer(r.Server); ok && s.OAuth != nil {
		found, how = append(found, mcptool.Endpoint(s, getenv)), s.OAuth
	}
	for _, use := range m.Agent.Uses {
		if use.Key != external.Key {
			continue
		}
		in := registry.Context{
			Context: ctx, Agent: m.ID, AgentDir: m.Dir, WorkspaceDir: f.Root, StateDir: filepath.Dir(paths.MCPLogins(m.ID)),
			Secret: func(_ context.Context, ref string) (string, error) { return resolve(ref) },
		}
		at, a, err := external.Protected(in, use.Config, r.Server)
		if err != nil {
			return nil, err
		}
		if at != nil {
			found, how = append(found, at), a
		}
	}
	switch {
	case len(found) == 0:
		return nil, fmt.Errorf("the agent %s has no MCP server %q that takes a login: its entry in agent.yaml needs url, and oauth: {}", m.ID, r.Server)
	case len(found) > 1 && found[0].URL != found[1].URL:
		return nil, fmt.Errorf("the agent %s has two MCP servers %q: rename one of them", m.ID, r.Server)
	case how.Grant != fleet.GrantLogin:
		return nil, fmt.Errorf("the agent %s gets its tokens of the MCP server %s by itself (grant: %s)", m.ID, r.Server, how.Grant)
	}
	logins := mcpaccess.Logins{Dir: paths.MCPLogins(m.ID), Agent: m.Address}
	return &target{r.Server, found[0], mcpaccess.Config(r.Server, how, found[0], resolve, logins), logins.Store(), how.RedirectPort}, nil
}

// browse opens a page. Whoever has no browser here has the page's address.
func browse(env *cli.Env, page string) {
	program := env.Getenv("BROWSER")
	switch desktop := env.Getenv("DISPLAY") + env.Getenv("WAYLAND_DISPLAY"); {
	case program != "" && !strings.ContainsAny(program, " :%"):
	case runtime.GOOS == "darwin":
		program = "open"
	case desktop != "":
		program = "xdg-open"
	default:
		return
	}
	cmd := exec.CommandContext(context.Background(), program, page) // it outlives the command
	if err := cmd.Start(); err != nil {
		if !errors.Is(err, exec.ErrNotFound) {
			fmt.Fprintf(env.Stderr, "no browser was opened: %v\n", err)
		}
		return
	}
	go func() { _ = cmd.Wait() }() // it may stay for as long as it likes
}
