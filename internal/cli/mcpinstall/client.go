package mcpinstall

import (
	"path/filepath"
)

// A setting is a key of a configuration with its value: a string, a list of strings or
// settings.
type setting struct {
	key   string
	value any
}

// A server is what a client has to know to use an agent.
type server struct {
	name string
	// command and args start agentd; env are the variables that it needs and that clients
	// may keep from it.
	command string
	args    []string
	env     []string
	// url is set instead where the agent serves HTTP, and token names the environment
	// variable that has the bearer token, if it takes one.
	url, token string
}

// A client is a program that uses MCP servers, and how it is told about them.
type client struct {
	name string
	// file is where its configuration is; project says that it is that of a project.
	file func(getenv func(string) string) string
	// object is the member of the file that has the servers.
	object string
	toml   bool
	// settings describe a server.
	settings func(s server) []setting
	// reload is how the client gets to know, for people.
	reload string
}

// clients returns all that are known.
func clients() []client {
	inProject := func(path string) func(func(string) string) string {
		return func(func(string) string) string { return path }
	}
	return []client{
		{
			name: "claude-code", file: inProject(".mcp.json"), object: "mcpServers",
			settings: func(s server) []setting { return jsonSettings(s, "type", reference{"${", "}", ":-"}) },
			reload:   "Start claude in this folder, approve the server, and look at /mcp.",
		},
		{
			name: "cursor", file: inProject(filepath.Join(".cursor", "mcp.json")), object: "mcpServers",
			settings: func(s server) []setting { return jsonSettings(s, "", reference{"${env:", "}", ""}) },
			reload:   "Enable the server in Cursor's settings, under MCP.",
		},
		{
			name: "codex", file: codexFile, object: "mcp_servers", toml: true,
			settings: codexSettings,
			reload:   "Restart codex, and look at /mcp.",
		},
		{
			name: "vscode", file: inProject(filepath.Join(".vscode", "mcp.json")), object: "servers",
			settings: func(s server) []setting { return jsonSettings(s, "type", reference{"${env:", "}", ""}) },
			reload:   "Start the server with the action above its entry, or by MCP: List Servers.",
		},
	}
}

// names lists the clients.
func names() []string {
	var all []string
	for _, c := range clients() {
		all = append(all, c.name)
	}
	return all
}

// A reference is how a client's file refers to an environment variable: the name stands
// between before and after. With empty behind the name, a variable that is not set is the
// empty string. Claude Code would pass the reference itself on, and warn about it at each
// start; the others need nothing for that.
type reference struct{ before, after, empty string }

// jsonSettings are those of the clients whose files are JSON. kind is the key that says how
// the server is reached, where the client wants it.
func jsonSettings(s server, kind string, ref reference) []setting {
	var all []setting
	add := func(transport string) {
		if kind != "" {
			all = append(all, setting{kind, transport})
		}
	}
	if s.url != "" {
		add("http")
		all = append(all, setting{"url", s.url})
		if s.token != "" {
			all = append(all, setting{"headers", []setting{{"Authorization", "Bearer " + ref.before + s.token + ref.after}}})
		}
		return all
	}
	add("stdio")
	all = append(all, setting{"command", s.command}, setting{"args", s.args})
	var env []setting
	for _, name := range s.env {
		env = append(env, setting{name, ref.before + name + ref.empty + ref.after})
	}
	if env != nil {
		all = append(all, setting{"env", env})
	}
	return all
}

// codexFile is the user's own file: Codex reads that of a project only where the user
// trusts it.
func codexFile(getenv func(string) string) string {
	home := getenv("CODEX_HOME")
	if home == "" && getenv("HOME") != "" {
		home = filepath.Join(getenv("HOME"), ".codex")
	}
	if home == "" {
		return ""
	}
	return filepath.Join(home, "config.toml")
}

func codexSettings(s server) []setting {
	if s.url != "" {
		all := []setting{{"url", s.url}}
		if s.token != "" {
			all = append(all, setting{"bearer_token_env_var", s.token})
		}
		return all
	}
	all := []setting{{"command", s.command}, {"args", s.args}}
	if s.env != nil { // Codex passes on those that are named, and few others
		all = append(all, setting{"env_vars", s.env})
	}
	return all
}

// obsolete are the keys of the other transport, which may not stand beside those of this
// one.
func (s server) obsolete() []string {
	if s.url != "" {
		return []string{"command", "args", "env", "env_vars"}
	}
	return []string{"url", "headers", "bearer_token_env_var", "http_headers", "env_http_headers"}
}
