package mcpinstall

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/internal/spelling"
)

// A Request is one `agentd mcp install`.
type Request struct {
	// Client is the program whose configuration is written.
	Client string
	// Agent is the agent in whose name it calls; "" is the fleet's only one.
	Agent string
	// As is the client's name in permissions, limits and records; "" is Client.
	As string
	// Name is what the client calls the server; "" is the agent's id.
	Name string
	// Names and Profile are flags of agentd mcp that the client is to start it with.
	Names, Profile string
	// HTTP has the client connect to the agent, which serves HTTP. URL is where, "" for
	// what agent.yaml says, and TokenEnv the variable with the token.
	HTTP     bool
	URL      string
	TokenEnv string
	// Print prints what belongs in the file, and writes nothing.
	Print bool
	// File is the file to write; "" is the client's own.
	File string
	// Replace replaces another server of the same name.
	Replace bool
}

// A result is what was done, for -o json.
type result struct {
	Client  string `json:"client"`
	Server  string `json:"server"`
	File    string `json:"file"`
	Changed bool   `json:"changed"`
}

// Install writes the entry of an agent into the configuration of a client, or prints it.
func Install(env *cli.Env, r Request) error {
	at := slices.IndexFunc(clients(), func(c client) bool { return c.name == r.Client })
	if at < 0 {
		return cli.Usage("--client: %q is not known; there is %s", r.Client, spelling.Among(r.Client, names()))
	}
	c := clients()[at]
	s, err := describe(env, r)
	if err != nil {
		return err
	}
	if r.Print {
		_, err := env.Stdout.Write(c.snippet(s))
		return err
	}
	path := r.File
	if path == "" {
		path = c.file(env.Getenv)
	}
	if path == "" {
		return errors.New("neither CODEX_HOME nor HOME is set: name the file by --write")
	}
	changed, err := update(path, func(old []byte) ([]byte, error) { return c.merge(old, s, r.Replace) })
	if kept := new(keptError); errors.As(err, &kept) {
		// Nobody has to do by hand what the error only describes.
		if _, printErr := env.Stdout.Write(c.snippet(s)); printErr != nil {
			return printErr
		}
		return fmt.Errorf("%s is left as it is: %w; what belongs in it is printed", path, err)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if env.Format != output.Table {
		return output.WriteJSON(env.Stdout, env.Format, result{c.name, s.name, path, changed})
	}
	if !changed {
		_, err = fmt.Fprintf(env.Stdout, "%s has the server %s already\n", path, s.name)
		return err
	}
	_, err = fmt.Fprintf(env.Stdout, "%s has the server %s now\n%s\n", path, s.name, c.reload)
	return err
}

// describe says how a client reaches the agent.
func describe(env *cli.Env, r Request) (server, error) {
	f, err := env.LoadFleet(fleet.LoadOptions{InspectOnly: true})
	if err != nil {
		return server{}, err
	}
	m, err := member(f, cli.ID(r.Agent))
	if err != nil {
		return server{}, err
	}
	as := r.As
	if as == "" {
		as = r.Client
	}
	if !fleet.IsMCPClient(as) {
		return server{}, cli.Usage("--as: %q is no name of a client: 1 to 32 of a-z, 0-9 and -", as)
	}
	face := m.Agent.MCP
	entry, known := face.Client(as)
	if len(face.Clients) > 0 && !known {
		var all []string
		for _, c := range face.Clients {
			all = append(all, c.Name)
		}
		return server{}, cli.Usage("--as: mcp.clients of %s has no %q; it has %s", m.ID, as, spelling.Among(as, all))
	}
	s := server{name: r.Name}
	if s.name == "" {
		s.name = strings.ReplaceAll(m.ID, ".", "_") // which would be a table of its own in TOML
	}
	if r.HTTP || r.URL != "" {
		return s.overHTTP(r, m.ID, face, entry)
	}
	return s.overStdio(env, r, f.Root, m.ID, as)
}

// member returns the agent of an id, or the only one.
func member(f *fleet.Fleet, id string) (*fleet.Member, error) {
	ids := make([]string, len(f.Members))
	for i, m := range f.Members {
		ids[i] = m.ID
	}
	if id == "" && len(f.Members) == 1 {
		id = ids[0]
	}
	if id == "" {
		return nil, cli.Usage("--agent: which agent of the fleet %s is it? It has %s", f.Name, strings.Join(ids, ", "))
	}
	m, ok := f.Member(id)
	if !ok {
		return nil, cli.Usage("--agent: the fleet %s has no agent %q; it has %s", f.Name, id, spelling.Among(id, ids))
	}
	return m, nil
}

func (s server) overStdio(env *cli.Env, r Request, root, agent, as string) (server, error) {
	var err error
	if s.command, err = os.Executable(); err != nil {
		return s, err
	}
	if builtByRun(s.command) {
		return s, cli.Usage("agentd was started by `go run`, whose programs do not stay: run `go install ./cmd/agentd`, and then `agentd mcp install …`")
	}
	if root, err = filepath.Abs(root); err != nil {
		return s, err
	}
	s.args = []string{"--fleet", root, "mcp", "--agent", agent, "--client", as}
	if r.Names != "" {
		s.args = append(s.args, "--names", r.Names)
	}
	if r.Profile != "" {
		s.args = append(s.args, "--profile", r.Profile)
	}
	// Without these, agentd would look for the agent in other folders than it runs in.
	for _, name := range []string{"XDG_RUNTIME_DIR", "XDG_STATE_HOME"} {
		if env.Getenv(name) != "" {
			s.env = append(s.env, name)
		}
	}
	return s, nil
}

// builtByRun reports whether a program is one of `go run`: in a folder that goes when the
// program ends, or in the cache of builds, where it goes some days later.
func builtByRun(program string) bool {
	folder := filepath.Base(filepath.Dir(program))
	entry, cached := strings.CutSuffix(folder, "-d")
	_, err := hex.DecodeString(entry)
	return cached && err == nil && len(entry) == 2*sha256.Size ||
		folder == "exe" && strings.Contains(program, string(filepath.Separator)+"go-build")
}

func (s server) overHTTP(r Request, agent string, face fleet.MCP, entry fleet.MCPClient) (server, error) {
	s.url, s.token = r.URL, r.TokenEnv
	if name, ok := strings.CutPrefix(entry.Token, "env:"); ok && s.token == "" {
		s.token = name
	}
	if s.token == "" && entry.Token != "" {
		return s, cli.Usage("--token-env: the token of %s is in a file, and clients take it from an environment variable: name one", entry.Name)
	}
	if s.url != "" {
		return s, nil
	}
	var err error
	if s.url, err = address(agent, face); err != nil {
		return s, err
	}
	if s.token == "" && !face.Open && entry.Subject == "" && entry.ClientID == "" {
		return s, cli.Usage("--http: mcp.clients of %s gives %s no token, and nobody is served over HTTP without one: add token: env:NAME to its entry", agent, entry.Name)
	}
	return s, nil
}

// address is the URL at which clients reach an agent that serves HTTP. Beyond loopback, the
// agent answers by the names of mcp.hosts alone, and not by what it listens on (0.0.0.0).
func address(agent string, face fleet.MCP) (string, error) {
	host, port, err := net.SplitHostPort(face.Listen)
	if err != nil || port == "0" {
		return "", cli.Usage("--http: mcp.listen of %s names no port: add it to its agent.yaml, or name the address by --url", agent)
	}
	if face.OAuth != nil { // clients compare it with the URL that they use
		return face.OAuth.Resource, nil
	}
	at := net.JoinHostPort(host, port)
	if !fleet.Loopback(face.Listen) && len(face.Hosts) > 0 {
		at = face.Hosts[0]
		if _, _, err := net.SplitHostPort(at); err != nil { // it names no port
			at = net.JoinHostPort(strings.Trim(at, "[]"), port)
		}
	}
	scheme := "http"
	if face.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + at + "/mcp", nil
}

// snippet is what belongs in an empty file.
func (c client) snippet(s server) []byte {
	text, err := c.merge(nil, s, true)
	if err != nil {
		return nil // an empty file has nothing to keep
	}
	return text
}

// merge returns the file with the entry of the server.
func (c client) merge(old []byte, s server, replace bool) ([]byte, error) {
	edit := editJSON
	if c.toml {
		edit = editTOML
	}
	return edit(old, []string{c.object, s.name}, c.settings(s), s.obsolete(), replace)
}

// keptError is why a file is left as it is.
type keptError struct{ why string }

func (e *keptError) Error() string { return e.why }

func keep(format string, args ...any) error { return &keptError{fmt.Sprintf(format, args...)} }

// another is the error about a server of the same name that agentd has not written.
func another(name string) error {
	return keep("it has another server %q (choose another name by --name, or replace it with --replace)", name)
}
