package capabilities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/capability/compat"
	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/mcpclient"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/internal/yamledit"
	"github.com/agentd/agentd/registry/external"
)

// An ImportRequest is one `agentd capabilities import-mcp`.
type ImportRequest struct {
	// Agent is the id of the member that is to offer the tools.
	Agent string
	// Server is what mcpServers of its agent.yaml calls the server. One that is there needs
	// neither Command nor URL.
	Server string
	// Command is the server's program and its arguments, URL where others run it.
	Command []string
	URL     string
	// Env are variables of the program, NAME=value or a reference to a secret.
	Env []string
	// Read and Write are files and folders that a program may read, or write, besides what
	// each may.
	Read, Write []string
	// Tools are those to import; empty: all.
	Tools []string
	// Prefix is put before the names of new capabilities.
	Prefix string
	// Update changes what was imported before, and DryRun writes nothing.
	Update, DryRun bool
	// Timeout bounds the whole.
	Timeout time.Duration
}

// ImportMCP reads the tools of an MCP server and writes them as capabilities of an agent,
// with the skills that run them and the lock. The error is a finding where a tool differs
// from what was imported, and is not to be updated.
func ImportMCP(ctx context.Context, env *cli.Env, r ImportRequest) error {
	f, err := env.LoadFleet(fleet.LoadOptions{})
	if err != nil {
		return err
	}
	m, ok := f.Member(cli.ID(r.Agent))
	if !ok {
		return fmt.Errorf("the fleet %s has no agent %q", f.Name, r.Agent)
	}
	im := &importer{env: env, fleet: f, member: m, request: r}
	if err := im.open(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	// That skills are confined is no news to who imports; that a program is not would be.
	log := slog.New(slog.NewTextHandler(env.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	paths, err := env.Paths(f)
	if err != nil {
		return err
	}
	listing, err := daemon.ListServer(ctx, daemon.Config{Fleet: f, Paths: paths, Logger: log, OwnsProcess: true, Confines: env.Confines}, m.ID, im.server)
	if err != nil {
		return im.unread(err)
	}
	tools, err := chosen(listing.Tools, r.Tools)
	if err != nil {
		return err
	}
	for _, tool := range tools {
		if err := im.tool(tool); err != nil {
			return err
		}
	}
	return im.finish(listing)
}

// unread is the error of a server that could not be read. A program that ends at once has often
// not found its own files.
func (im *importer) unread(err error) error {
	err = fmt.Errorf("the MCP server %s: %w", im.server.Name, err)
	switch {
	case errors.As(err, new(*fleet.LoadError)) || im.server.Process == nil || !im.env.Confines || im.server.Sandbox != nil && im.server.Sandbox.Off:
		return err
	case im.known:
		return fmt.Errorf("%w (the program is confined as a skill is: what else it may read and write is mcpServers.%s.sandbox)", err, im.server.Name)
	}
	return fmt.Errorf("%w (the program is confined as a skill is: name what else it has to read and write with --read and --write, such as the folder where it was installed)", err)
}

// chosen returns the tools of those names.
func chosen(all []mcpclient.Contract, names []string) ([]mcpclient.Contract, error) {
	if len(names) == 0 {
		return all, nil
	}
	var out []mcpclient.Contract
	for _, name := range names {
		i := slices.IndexFunc(all, func(c mcpclient.Contract) bool { return c.Name == name })
		if i < 0 {
			var have []string
			for _, c := range all {
				have = append(have, c.Name)
			}
			return nil, fmt.Errorf("the server has no tool %q, but %s", name, strings.Join(have, ", "))
		}
		out = append(out, all[i])
	}
	return out, nil
}

// An importer is the run of one import.
type importer struct {
	env     *cli.Env
	fleet   *fleet.Fleet
	member  *fleet.Member
	request ImportRequest

	server   fleet.MCPServer
	known    bool                // by agent.yaml
	granted  map[string][]string // to a new one
	agent    *yamledit.File
	contract *yamledit.File
	path     string // of the contract
	before   *capability.Document

	added, changed, same, kept []string             // capabilities; kept differ, and were not updated
	reviewed                   []mcpclient.Contract // of all but the kept ones
}

// open reads the files, and finds out how the server is reached.
func (im *importer) open() (err error) {
	if im.agent, err = readYAML(im.member.Agent.Path); err != nil {
		return err
	}
	path, ok := capability.Find(im.member.Dir)
	if im.path = path; !ok {
		im.path = filepath.Join(im.member.Dir, "capabilities.yaml")
		im.contract, err = yamledit.Parse([]byte(im.newContract()))
	} else if im.contract, err = readYAML(path); err == nil {
		im.before, err = capability.LoadWith(path, cli.FileOptions())
	}
	if err != nil {
		return err
	}
	return im.find()
}

// find sets the server: one of agent.yaml, or that of the request.
func (im *importer) find() error {
	r := im.request
	if r.Server == "" && len(r.Command) > 0 {
		r.Server = serverName(nameIn(r.Command))
	}
	if u, err := url.Parse(r.URL); r.Server == "" && r.URL != "" && err == nil {
		r.Server = serverName(u.Hostname())
	}
	if r.Server == "" {
		return cli.Usage("name a --server of agent.yaml, a --command or a --url")
	}
	server, known := im.member.Agent.MCPServer(r.Server)
	given := len(r.Command) > 0 || r.URL != ""
	switch {
	case known && given && (!slices.Equal(commandOf(server), r.Command) || server.URL != r.URL):
		return cli.Usage("agent.yaml has another server %q: leave --command and --url out, or choose another name with --server", r.Server)
	case known && len(r.Read)+len(r.Write) > 0:
		return cli.Usage("what the server %q may read and write is its sandbox in agent.yaml: leave --read and --write out", r.Server)
	case known && !hasVariables(server, r.Env):
		return cli.Usage("the variables of the server %q are its env in agent.yaml: change them there, and leave --env out", r.Server)
	case known:
		im.server, im.known = server, true
	case !given:
		return cli.Usage("agent.yaml has no server %q under mcpServers: name its --command or --url", r.Server)
	case len(r.Command) > 0:
		im.server = fleet.MCPServer{Name: r.Server, Process: &fleet.Process{Command: r.Command, Dir: im.fleet.Root, Env: r.Env}}
		return im.grant()
	case len(r.Read)+len(r.Write)+len(r.Env) > 0:
		return cli.Usage("--read, --write and --env are for a program that agentd runs")
	default:
		im.server = fleet.MCPServer{Name: r.Server, URL: r.URL}
	}
	return nil
}

// grant sets what the program of a new server may besides, as agent.yaml will.
func (im *importer) grant() error {
	granted := map[string][]string{}
	for key, list := range map[string][]string{"read": im.request.Read, "write": im.request.Write} {
		for _, path := range list {
			abs, err := filepath.Abs(path)
			if err != nil {
				return err
			}
			granted[key] = append(granted[key], abs)
		}
	}
	if len(granted) == 0 {
		return nil
	}
	src, err := json.Marshal(granted)
	if err != nil {
		return err
	}
	im.server.Sandbox, err = fleet.ParseSandbox(src, im.server.Process.Dir)
	im.granted = granted
	return err
}

// hasVariables reports whether a server has variables already, with the same values.
func hasVariables(s fleet.MCPServer, variables []string) bool {
	return !slices.ContainsFunc(variables, func(v string) bool { return s.Process == nil || !slices.Contains(s.Process.Env, v) })
}

// commandOf is the command of a server that is a program.
func commandOf(s fleet.MCPServer) []string {
	if s.Process == nil {
		return nil
	}
	return s.Process.Command
}

// nameIn returns the word of a command that looks like the name of a server, such as that of
// a package that npx runs, or else the program.
func nameIn(command []string) string {
	for _, word := range command {
		base := filepath.Base(word)
		if strings.Contains(base, "server") || strings.Contains(base, "mcp") {
			return strings.TrimPrefix(strings.TrimSuffix(base, filepath.Ext(base)), "server-")
		}
	}
	return filepath.Base(command[0])
}

// serverName makes a name of what a server is called by others.
func serverName(text string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(text)), "-")
}

// newContract is the file of an agent that has none yet. It is reached as the others are.
func (im *importer) newContract() string {
	id := im.member.ID
	transports := "  - kind: memory\n    topics: {requests: agents." + id + ".requests}\n"
	for _, m := range im.fleet.Members {
		if m.Capabilities == nil {
			continue
		}
		for _, t := range m.Capabilities.Transports {
			if t.Kind == capability.NATS {
				servers := make([]string, len(t.Servers))
				for i, s := range t.Servers {
					servers[i] = fmt.Sprintf("%q", s)
				}
				transports = "  - kind: nats\n    servers: [" + strings.Join(servers, ", ") + "]\n    subjects: {requests: agents." + id + ".requests}\n"
			}
		}
	}
	return "version: 1\nagent: " + string(im.member.Address) + "\ntransports:\n" + transports
}

func readYAML(path string) (*yamledit.File, error) {
	if filepath.Ext(path) == ".json" {
		return nil, fmt.Errorf("%s is JSON, and this command writes YAML: rename it to .yaml, which takes JSON as well", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f, err := yamledit.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// tool imports one tool.
func (im *importer) tool(t mcpclient.Contract) error {
	if _, _, err := t.Compile(); err != nil {
		return fmt.Errorf("agentd cannot check the tool %s: %w", t.Name, err)
	}
	fields, err := contractFields(t)
	if err != nil {
		return fmt.Errorf("the tool %s: %w", t.Name, err)
	}
	if c, index := im.imported(t.Name); c != nil {
		return im.update(t, c, index, fields)
	}
	name := im.request.Prefix + capabilityName(t.Name)
	if im.before != nil {
		for _, c := range im.before.Capabilities {
			if strings.EqualFold(c.Name, name) {
				return fmt.Errorf("the tool %s would be the capability %q, which %s has already: choose a --prefix", t.Name, c.Name, im.path)
			}
		}
	}
	if _, taken := im.member.Agent.Skill(name); taken {
		return fmt.Errorf("the tool %s would be the skill %q, which agent.yaml has already: choose a --prefix", t.Name, name)
	}
	item := yamledit.Map("name", yamledit.Text(name))
	for _, field := range fields {
		if field.value != nil {
			yamledit.Set(item, field.name, field.value)
		}
	}
	if err := im.contract.AppendItem("capabilities", item); err != nil {
		return err
	}
	use := yamledit.Map("server", yamledit.Text(im.server.Name))
	if name != t.Name {
		yamledit.Set(use, "tool", yamledit.Text(t.Name))
	}
	im.added, im.reviewed = append(im.added, name), append(im.reviewed, t)
	return im.agent.SetEntry("skills", name, yamledit.Map("mcp", use))
}

// imported returns the capability that a tool serves, and its place in the file.
func (im *importer) imported(tool string) (*capability.Capability, int) {
	if im.before == nil {
		return nil, 0
	}
	for i, c := range im.before.Capabilities {
		if s, ok := im.member.Agent.Skill(c.Skill); ok && s.MCP != nil && s.MCP.Server == im.server.Name && s.MCP.Tool == tool {
			return c, i
		}
	}
	return nil, 0
}

// capabilityName is the name of a tool with the characters that capabilities have.
func capabilityName(tool string) string {
	return strings.TrimLeft(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, tool), "-_")
}

// A field is a key of a capability; a nil value is left out.
type field struct {
	name  string
	value *yaml.Node
}

// contractFields are the keys of a capability that a tool decides.
func contractFields(t mcpclient.Contract) ([]field, error) {
	input, err := yamledit.FromJSON(t.InputSchema)
	if err != nil {
		return nil, err
	}
	result, err := yamledit.FromJSON(capability.MCPResultSchema(t.OutputSchema))
	if err != nil {
		return nil, err
	}
	compact(yamledit.Get(yamledit.Get(result, "properties"), "content"))
	fields := []field{
		{"description", nil}, {"schemaProfile", yamledit.Text(string(capability.ProfileFull))}, {"result", yamledit.Text(string(capability.ResultMCP))},
		{"idempotent", nil}, {"inputSchema", input}, {"outputSchema", result},
	}
	if t.Description != "" {
		fields[0].value = yamledit.Text(t.Description)
	}
	if t.Hints().Idempotent {
		fields[3].value = yamledit.Word("true")
	}
	return fields, nil
}

// compact writes a part on one line: the schema of content is the same for all tools.
func compact(n *yaml.Node) {
	if n != nil {
		n.Style = yaml.FlowStyle
	}
}

// update compares a tool with what was imported of it.
func (im *importer) update(t mcpclient.Contract, c *capability.Capability, index int, fields []field) error {
	edited := *im.contract
	if err := edited.EditItem("capabilities", index, func(item *yaml.Node) {
		for _, f := range fields {
			yamledit.Set(item, f.name, f.value)
		}
	}); err != nil {
		return err
	}
	after, err := capability.Parse(im.path, edited.Bytes(), cli.FileOptions())
	if err != nil {
		return fmt.Errorf("the tool %s does not fit a capabilities file: %w", t.Name, err)
	}
	report := compat.Compare(only(im.before, c.Name), only(after, c.Name), compat.Both)
	report.RefuseWords() // they are to be reviewed as well
	if len(report.Findings) == 0 {
		im.same, im.reviewed = append(im.same, c.Name), append(im.reviewed, t)
		return nil
	}
	if err := report.WriteText(im.env.Stdout, im.env.Colors()); err != nil {
		return err
	}
	if !im.request.Update {
		im.kept = append(im.kept, c.Name)
		return nil
	}
	im.changed, im.reviewed = append(im.changed, c.Name), append(im.reviewed, t)
	*im.contract = edited
	return nil
}

// only is the published form of one capability.
func only(d *capability.Document, name string) *capability.Published {
	p := d.Published()
	return &capability.Published{Agent: p.Agent, ToolSchemas: map[string]capability.ToolSchema{name: p.ToolSchemas[name]}}
}

// finish writes the files, and says what they have become.
func (im *importer) finish(listing *mcpclient.Listing) error {
	if !im.known && len(im.added) > 0 {
		if err := im.agent.SetEntry("mcpServers", im.server.Name, serverEntry(im.server, im.granted)); err != nil {
			return err
		}
	}
	if len(im.added)+len(im.changed) > 0 {
		if err := im.write(listing); err != nil {
			return err
		}
	}
	out := im.env.Stderr
	fmt.Fprintf(out, "%s %s (protocol of %s): %d new, %d changed, %d unchanged\n", im.server.Name, output.Printable(listing.Implementation), listing.Era, len(im.added), len(im.changed), len(im.same))
	for _, name := range im.added {
		fmt.Fprintf(out, "  + %s\n", name)
	}
	for _, name := range im.changed {
		fmt.Fprintf(out, "  ~ %s\n", name)
	}
	if !im.known && len(im.added) > 0 && im.server.Process != nil {
		fmt.Fprintf(out, "The program runs confined, here and in the agent: what it may read and write besides the system is mcpServers.%s.sandbox of agent.yaml\n", im.server.Name)
	}
	if len(im.kept) > 0 {
		fmt.Fprintf(out, "  ! not updated: %s. Review the differences above, and import again with --update\n", strings.Join(im.kept, ", "))
		return cli.Finding(nil)
	}
	return nil
}

// write checks the new contract as a load does, and puts all files in their places.
func (im *importer) write(listing *mcpclient.Listing) error {
	text := im.contract.Bytes()
	doc, err := capability.Parse(im.path, text, cli.FileOptions())
	if err != nil {
		return fmt.Errorf("the tools do not fit a capabilities file; nothing was written: %w", err)
	}
	if im.request.DryRun {
		fmt.Fprintf(im.env.Stdout, "# %s\n%s\n# %s\n%s", im.path, text, im.member.Agent.Path, im.agent.Bytes())
		return nil
	}
	// Before anything is written: a lock that cannot be read would leave half of an import.
	pins, err := im.pins(listing)
	if err != nil {
		return err
	}
	lockPath := filepath.Join(im.fleet.Root, LockName)
	lock, err := locked(lockPath, doc)
	if err != nil {
		return err
	}
	if err := replaceFile(im.path, text); err != nil {
		return err
	}
	if len(im.added) > 0 {
		if err := replaceFile(im.member.Agent.Path, im.agent.Bytes()); err != nil {
			return err
		}
	}
	if err := external.WriteLock(im.member.Dir, pins); err != nil {
		return err
	}
	return replaceFile(lockPath, lock)
}

// pins is the lock of the agent's servers with the contracts of the tools, so that its own tools
// may be those as well, and `agentd registry pin --check` finds what changes later.
func (im *importer) pins(listing *mcpclient.Listing) (*external.Lock, error) {
	lock, err := external.ReadLock(im.member.Dir)
	if err != nil {
		return nil, err
	}
	return lock, lock.Add(im.server.Name, listing.Implementation, im.reviewed)
}

// locked is the lock at path with the new contract of this agent. What others have changed stays
// to be found by `agentd capabilities check`.
func locked(path string, doc *capability.Document) ([]byte, error) {
	lock, err := compat.ReadLock(path)
	if errors.Is(err, compat.ErrNoLock) {
		lock = &compat.Lock{Version: compat.LockVersion}
	} else if err != nil {
		return nil, err
	}
	if lock.Peers == nil {
		lock.Peers = map[envelope.Address]*capability.Published{}
	}
	lock.Peers[doc.Agent] = doc.Published()
	return lock.Encode()
}

// serverEntry is the entry of mcpServers for a server of the request, with what its program was
// granted.
func serverEntry(s fleet.MCPServer, granted map[string][]string) *yaml.Node {
	if s.Process == nil {
		return yamledit.Map("url", yamledit.Text(s.URL))
	}
	entry := yamledit.Map("command", texts(s.Process.Command))
	if len(s.Process.Env) > 0 {
		env := yamledit.Map()
		for _, kv := range s.Process.Env {
			name, value, _ := strings.Cut(kv, "=")
			yamledit.Set(env, name, yamledit.Text(value))
		}
		yamledit.Set(entry, "env", env)
	}
	if len(granted) > 0 {
		sandbox := yamledit.Map()
		for _, key := range []string{"read", "write"} {
			if len(granted[key]) > 0 {
				yamledit.Set(sandbox, key, texts(granted[key]))
			}
		}
		yamledit.Set(entry, "sandbox", sandbox)
	}
	return entry
}

// texts is a list on one line.
func texts(all []string) *yaml.Node {
	list := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, text := range all {
		list.Content = append(list.Content, yamledit.Text(text))
	}
	return list
}
