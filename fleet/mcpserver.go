package fleet

import (
	"fmt"
	"math"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/agentd/agentd/internal/spelling"
	"github.com/agentd/agentd/internal/strictyaml"
)

// An MCPServer is a server of the Model Context Protocol whose tools run skills. Either
// Process or URL is set.
type MCPServer struct {
	// Name is that of the entry of mcpServers, or of the skill that has a server of its own.
	Name string
	// Process is the program that speaks the protocol on standard input and output. Values of
	// its Env may be references to secrets.
	Process *Process
	// Sandbox grants the program more, or is nil.
	Sandbox *Sandbox
	// URL is where others run the server.
	URL string
	// Credentials are sent to it, AllowAddresses are ranges that it may be in although they
	// are not public, and CAFile holds authorities in place of the system's.
	Credentials    []MCPCredential
	AllowAddresses []string
	CAFile         string
	// OAuth is how the agent gets tokens of the server, or is nil.
	OAuth *MCPAuth
	// Era is that of the protocol, "2025-11-25" or "2026-07-28"; "" finds out.
	Era string
	// Pending bounds the calls under way, PerMinute those in a minute, and MaxMessageBytes
	// a message of the server. 0 is the default.
	Pending, PerMinute, MaxMessageBytes int
	// StartTimeout bounds the making of a connection; 0 is the default.
	StartTimeout time.Duration
	// Roots are folders that the server may ask for, as absolute paths.
	Roots []string
	// PinWords refuses calls of tools whose descriptions are others than those that were
	// reviewed, unless a use of the server says otherwise. Else that is reported.
	PinWords bool
	// Position is where the server is declared.
	Position Position
}

// An MCPCredential is a header of requests to a server.
type MCPCredential struct {
	// Header is Authorization if empty. Scheme is put before the secret, as in "Bearer".
	Header, Scheme string
	// SecretRef names the place of the secret.
	SecretRef string
}

// A ServerTool is a tool that runs a skill.
type ServerTool struct {
	// Server is the name of one of [AgentFile].MCPServers.
	Server string
	// Tool is the tool's name; it defaults to the skill's.
	Tool string
	// Text says what the text of a result is, in place of its structured content: "json", a
	// JSON value, or "string"; "" does not use it.
	Text string
	// PinWords refuses calls while the descriptions of the tool are not those of the
	// capability. Otherwise that is reported.
	PinWords bool
	// Position is where the tool is named.
	Position Position

	serverAt strictyaml.Value
	words    bool // PinWords is set by the tool itself
}

// MCPServer returns the server of that name.
func (a *AgentFile) MCPServer(name string) (MCPServer, bool) {
	i := slices.IndexFunc(a.MCPServers, func(s MCPServer) bool { return s.Name == name })
	if i < 0 {
		return MCPServer{}, false
	}
	return a.MCPServers[i], true
}

// Programs are the skills that are programs, and those that MCP servers are, as skills.
func (a *AgentFile) Programs() (all []Skill) {
	for _, s := range a.Skills {
		if s.Process != nil {
			all = append(all, s)
		}
	}
	for _, s := range a.MCPServers {
		if s.Process != nil {
			all = append(all, s.Program())
		}
	}
	return all
}

// Program is the program of a server, as a skill.
func (s *MCPServer) Program() Skill {
	return Skill{Name: "MCP server " + s.Name, Process: s.Process, Sandbox: s.Sandbox, Position: s.Position}
}

// decodeMCPServers reads the key mcpServers.
func (a *AgentFile) decodeMCPServers(v strictyaml.Value, p paths) {
	for _, e := range v.Entries() {
		if e.Name == "" {
			e.Value.Fault("a server's name must not be empty", "")
		}
		o := e.Value.Object()
		a.MCPServers = append(a.MCPServers, decodeMCPServer(o, e.Name, p))
		o.Done()
	}
}

// decodeMCPServer reads the keys of a server. The caller may read more, and calls Done.
func decodeMCPServer(o *strictyaml.Object, name string, p paths) MCPServer {
	s := MCPServer{Name: name, Position: o.Value().Position()}
	command, address := o.Get("command"), o.Get("url")
	switch {
	case command.Present() && address.Present():
		address.Fault("a server is a command or a URL", "keep one of the keys")
	case !command.Present() && !address.Present():
		command = o.Need("command")
	}
	if command.Present() {
		s.Process = &Process{Dir: p.root, MaxOutputBytes: defaultMaxOutput, KillGrace: defaultKillGrace, InheritEnv: decodeEnvNames(o.Get("inheritEnv")), Env: decodeEnv(o.Get("env"))}
		for i, arg := range command.AtLeastOne("word: the program").List() {
			if i == 0 {
				s.Process.Command = append(s.Process.Command, arg.Text())
			} else {
				s.Process.Command = append(s.Process.Command, arg.String())
			}
		}
		if dir := o.Get("dir"); dir.Present() {
			s.Process.Dir = p.inside(dir, p.root)
		}
		s.Sandbox = decodeSandbox(o.Get("sandbox"), s.Process.Dir)
	}
	if address.Present() {
		s.URL = decodeMCPURL(address)
		s.AllowAddresses, s.CAFile = o.Get("allowAddresses").Texts(), p.carried(o.Get("caFile"))
		for _, item := range o.Get("credentials").List() {
			c := item.Object()
			s.Credentials = append(s.Credentials, MCPCredential{Header: c.Get("header").Text(), Scheme: c.Get("scheme").Text(), SecretRef: c.Need("secret").Text()})
			c.Done()
		}
		s.OAuth = decodeMCPAuth(o.Get("oauth"), s.Credentials)
	}
	s.Era = o.Get("era").Enum("2025-11-25", "2026-07-28")
	s.Pending, s.PerMinute = int(o.Get("pending").Int(1, math.MaxInt32)), int(o.Get("perMinute").Int(1, math.MaxInt32))
	s.MaxMessageBytes = int(o.Get("maxMessageBytes").Int(1, 1<<30))
	s.StartTimeout = o.Get("startTimeoutMs").Millis(maxDuration)
	for _, item := range o.Get("roots").List() {
		s.Roots = append(s.Roots, p.carried(item))
	}
	s.PinWords = decodeWords(o.Get("descriptions"))
	return s
}

// decodeWords reads what becomes of descriptions that have changed: whether they stop calls.
func decodeWords(v strictyaml.Value) bool { return v.Enum("report", "refuse") == "refuse" }

func decodeMCPURL(v strictyaml.Value) string {
	text := v.Text()
	u, err := url.Parse(text)
	switch {
	case text == "":
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		v.Fault("expected the URL of an MCP server", "such as https://mcp.example.com/mcp")
	case u.User != nil:
		v.Fault("a URL holds no password", "name the secret under credentials")
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		v.Fault("the server would be reached without encryption", "use https; http is for the loopback addresses of this machine, such as http://127.0.0.1:8000/mcp")
	}
	return text
}

// isLoopback reports whether a host is written as a loopback address. A name may lead
// anywhere.
func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// decodeMCPTool reads the key mcp of a skill. A server that the skill has for itself is
// added to the agent's.
func (a *AgentFile) decodeMCPTool(v strictyaml.Value, skill string, p paths) *ServerTool {
	o := v.Object()
	defer o.Done()
	t := &ServerTool{Tool: o.Get("tool").Text(), Position: v.Position(), serverAt: o.Get("server")}
	if t.Tool == "" {
		t.Tool = skill
	}
	t.Text = o.Get("text").Enum("json", "string")
	t.PinWords, t.words = decodeWords(o.Get("descriptions")), o.Get("descriptions").Present()
	if t.Server = t.serverAt.Text(); t.serverAt.Present() {
		return t
	}
	t.Server = skill
	a.MCPServers = append(a.MCPServers, decodeMCPServer(o, skill, p))
	return t
}

// checkMCPServers reports skills of servers that are not declared, and two servers of one
// name.
func (a *AgentFile) checkMCPServers() {
	var names []string
	for _, s := range a.MCPServers {
		names = append(names, s.Name)
	}
	for _, s := range a.Skills {
		switch {
		case s.MCP == nil || s.MCP.Server == "":
		case !slices.Contains(names, s.MCP.Server):
			s.MCP.serverAt.Fault(fmt.Sprintf("there is no MCP server %q under mcpServers", s.MCP.Server), spelling.DidYouMean(s.MCP.Server, names))
		case !s.MCP.serverAt.Present() && slices.Index(names, s.Name) != len(names)-1-slices.Index(reversed(names), s.Name):
			s.MCP.serverAt.Fault(fmt.Sprintf("the skill %q has an MCP server of its own, and mcpServers has one of that name", s.Name), "rename one of them")
		case !s.MCP.words:
			server, _ := a.MCPServer(s.MCP.Server)
			s.MCP.PinWords = server.PinWords
		}
		if s.MCP != nil {
			s.MCP.serverAt = strictyaml.Value{} // it holds the whole file
		}
	}
}

func reversed(names []string) []string {
	out := slices.Clone(names)
	slices.Reverse(out)
	return out
}
