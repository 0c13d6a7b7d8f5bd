package external

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/mcpaccess"
	"github.com/agentd/agentd/internal/mcpclient"
	"github.com/agentd/agentd/internal/netguard"
	"github.com/agentd/agentd/internal/secretref"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/internal/toolerror"
)

const configSchema = `{
  "type": "object",
  "properties": {
    "servers": {"type": ["array", "object"], "description": "names of mcpServers, or by name how each is used", "items": {"type": "string", "minLength": 1}, "uniqueItems": true, "additionalProperties": {
      "type": "object",
      "properties": {
        "timeoutMs": {"type": "integer", "minimum": 1, "maximum": 600000, "default": 60000, "description": "the time of a call, for a server of mcpServers"},
        "command": {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "description": "a program with its arguments"},
        "dir": {"type": "string", "minLength": 1, "description": "the working folder, relative to the agent's"},
        "env": {"type": "object", "additionalProperties": {"type": "string"}, "description": "variables; a value that is a reference stands for the secret"},
        "sandbox": {"description": "what the program may, as for a skill"},
        "url": {"type": "string", "minLength": 1},
        "credentials": {"type": "array", "items": {
          "type": "object",
          "properties": {
            "header": {"type": "string", "minLength": 1, "default": "Authorization"},
            "scheme": {"type": "string", "minLength": 1, "description": "put before the secret, as in Bearer"},
            "secret": {"type": "string", "minLength": 1, "description": "a reference, such as env:TOKEN"}
          },
          "required": ["secret"],
          "additionalProperties": false
        }},
        "allowAddresses": {"type": "array", "items": {"type": "string"}, "description": "ranges that the URL may lead to although they are not public"},
        "caFile": {"type": "string", "minLength": 1},
        "oauth": {
          "type": "object",
          "description": "how tokens of the server are had",
          "properties": {
            "grant": {"enum": ["login", "client-credentials", "jwt-bearer"], "default": "login"},
            "issuer": {"type": "string", "minLength": 1},
            "clientId": {"type": "string", "minLength": 1},
            "clientSecret": {"type": "string", "minLength": 1, "description": "a reference"},
            "privateKey": {"type": "string", "minLength": 1, "description": "a reference"},
            "assertion": {"type": "string", "minLength": 1, "description": "a reference"},
            "keyId": {"type": "string", "minLength": 1},
            "algorithm": {"enum": ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]},
            "method": {"enum": ["client_secret_basic", "client_secret_post"]},
            "clientMetadata": {"type": "string", "minLength": 1},
            "scopes": {"type": "array", "items": {"type": "string", "minLength": 1}},
            "redirectPort": {"type": "integer", "minimum": 1, "maximum": 65535}
          },
          "additionalProperties": false
        },
        "era": {"enum": ["2025-11-25", "2026-07-28"], "description": "of the protocol, which is found out if it is left out"},
        "tools": {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": true, "description": "those of the server's tools that the agent has"},
        "descriptions": {"enum": ["refuse", "report"], "description": "what becomes of a tool whose description alone has changed: what its entry of mcpServers says, and refuse for a server that is declared here"},
        "roots": {"type": "array", "items": {"type": "string", "minLength": 1}, "description": "folders that the server gets to know"},
        "limits": {
          "type": "object",
          "properties": {
            "pending": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 16},
            "perMinute": {"type": "integer", "minimum": 1, "maximum": 100000},
            "timeoutMs": {"type": "integer", "minimum": 1, "maximum": 600000, "default": 60000},
            "startTimeoutMs": {"type": "integer", "minimum": 1, "maximum": 600000, "default": 30000},
            "maxBytes": {"type": "integer", "minimum": 1024, "maximum": 67108864, "default": 4194304},
            "relistMs": {"type": "integer", "minimum": 1000, "maximum": 86400000, "default": 300000}
          },
          "additionalProperties": false
        }
      },
      "additionalProperties": false
    }}
  },
  "required": ["servers"],
  "additionalProperties": false
}`

// config is what an agent's file says.
type config struct {
	Servers servers `json:"servers"`
}

// A server is one of them.
type server struct {
	Command        []string          `json:"command"`
	Dir            string            `json:"dir"`
	Env            map[string]string `json:"env"`
	Sandbox        json.RawMessage   `json:"sandbox"`
	URL            string            `json:"url"`
	Credentials    []credential      `json:"credentials"`
	AllowAddresses []string          `json:"allowAddresses"`
	CAFile         string            `json:"caFile"`
	OAuth          *fleet.MCPAuth    `json:"oauth"`
	Era            string            `json:"era"`
	Tools          []string          `json:"tools"`
	Descriptions   string            `json:"descriptions"`
	Roots          []string          `json:"roots"`
	Limits         limits            `json:"limits"`
	TimeoutMs      int64             `json:"timeoutMs"`
}

type credential struct {
	Header string `json:"header"`
	Scheme string `json:"scheme"`
	Secret string `json:"secret"`
}

type limits struct {
	Pending        int   `json:"pending"`
	PerMinute      int   `json:"perMinute"`
	TimeoutMs      int64 `json:"timeoutMs"`
	StartTimeoutMs int64 `json:"startTimeoutMs"`
	MaxBytes       int   `json:"maxBytes"`
	RelistMs       int64 `json:"relistMs"`
}

func fault(pointer, message, hint string) error {
	return &registry.ConfigError{Pointer: pointer, Message: message, Hint: hint}
}

// maxServerName leaves room for the names of tools.
const maxServerName = 32

// names returns the names of the servers in order, and checks them.
func (r *Resolver) names(c *config) ([]string, error) {
	names := slices.Sorted(maps.Keys(c.Servers))
	for _, name := range names {
		if s := c.Servers[name]; s.reference() {
			if err := r.checkReference(name, s); err != nil {
				return nil, err
			}
		}
		const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
		if name == "" || len(name) > maxServerName || strings.TrimLeft(name, allowed) != "" || strings.Contains(name, "__") {
			return nil, fault(pointer(name), fmt.Sprintf("the name %q of a server is not 1 to %d letters, digits, - and single _", name, maxServerName), "")
		}
	}
	return names, nil
}

func pointer(name string) string {
	return "/servers/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// options turns the configuration of a server into what package mcpclient needs. at is its
// place.
func (r *Resolver) options(ctx registry.Context, name string, s server) (mcpclient.Options, error) {
	if s.reference() {
		return r.declaredOptions(ctx, name, s)
	}
	at := pointer(name)
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	o := mcpclient.Options{
		Name: name, Era: s.Era, AcceptDescriptions: s.Descriptions == "report", Logger: ctx.Logger,
		Limits: mcpclient.Limits{
			Pending: s.Limits.Pending, PerMinute: s.Limits.PerMinute, Timeout: ms(s.Limits.TimeoutMs),
			StartTimeout: ms(s.Limits.StartTimeoutMs), MessageBytes: s.Limits.MaxBytes, Relist: ms(s.Limits.RelistMs),
		},
	}
	for _, dir := range s.Roots {
		u := url.URL{Scheme: "file", Path: filepath.ToSlash(below(ctx.WorkspaceDir, dir))}
		o.Roots = append(o.Roots, u.String())
	}
	var err error
	switch {
	case len(s.Command) > 0 && s.URL != "":
		return o, fault(at, "a server is reached either by a command or by a url", "write one of the two")
	case s.TimeoutMs != 0:
		return o, fault(at+"/timeoutMs", "it is for a server of mcpServers", "write limits: {timeoutMs: …}")
	case s.URL != "" && (s.Dir != "" || s.Env != nil || s.Sandbox != nil):
		return o, fault(at, "dir, env and sandbox are for a command", "")
	case s.URL != "":
		if o.URL, err = s.endpoint(ctx, at); err == nil {
			o.URL.Auth, err = s.access(ctx, name, at, o.URL)
		}
	case s.Credentials != nil || s.AllowAddresses != nil || s.CAFile != "" || s.OAuth != nil:
		return o, fault(at, "credentials, allowAddresses, caFile and oauth are for a url", "")
	default:
		o.Command, err = r.command(ctx, name, s)
	}
	return o, err
}

// command is a server that agentd runs.
func (r *Resolver) command(ctx registry.Context, name string, s server) (*mcpclient.Command, error) {
	for key := range s.Env {
		if key == "" || strings.ContainsAny(key, "=\x00") {
			return nil, fault(pointer(name)+"/env", fmt.Sprintf("%q is no name of a variable", key), "")
		}
	}
	c := &mcpclient.Command{Args: s.Command, Dir: below(ctx.AgentDir, s.Dir), Env: func() ([]string, error) { return environment(ctx, s.Env) }}
	if r.confine == nil {
		return c, nil
	}
	var err error
	c.Sandbox, c.Descendants, err = r.confine(ctx, name, c.Dir, s.Sandbox)
	return c, err
}

// environment returns the variables with the secrets that they refer to. It is asked for
// after the resolution has ended, and its context with it.
func environment(ctx registry.Context, named map[string]string) (env []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(named)) {
		value := named[name]
		if secretref.Is(value) {
			if value, err = secret(ctx, value); err != nil {
				return nil, fmt.Errorf("env: %s: %w", name, err)
			}
		}
		env = append(env, name+"="+value)
	}
	return env, nil
}

// endpoint is a server that others run.
func (s server) endpoint(ctx registry.Context, at string) (*mcpclient.Endpoint, error) {
	u, err := url.Parse(s.URL)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Fragment != "" {
		return nil, fault(at+"/url", "it is not the URL of a server", "write it as https://mcp.example.com/mcp")
	}
	addr, err := netip.ParseAddr(u.Hostname())
	numbered := err == nil
	if u.Scheme == "http" && (!numbered || !addr.Unmap().IsLoopback()) {
		return nil, fault(at+"/url", "the server would be reached without encryption", "use https; http is for the loopback addresses of this machine, such as http://127.0.0.1:8000/mcp")
	}
	guard := netguard.Config{Hosts: []string{u.Host}, AllowAddresses: s.AllowAddresses}
	if numbered { // whoever writes the number of an address means that one
		guard.AllowAddresses = append(slices.Clone(guard.AllowAddresses), netip.PrefixFrom(addr, addr.BitLen()).String())
	}
	if s.CAFile != "" {
		guard.CAFile = below(ctx.WorkspaceDir, s.CAFile)
	}
	for _, c := range s.Credentials {
		if u.Scheme != "https" {
			return nil, fault(at+"/credentials", "the secret would be sent without encryption", "use an https URL")
		}
		guard.Credentials = append(guard.Credentials, netguard.CredentialConfig{Host: u.Host, Header: c.Header, Scheme: c.Scheme, Secret: c.Secret})
	}
	endpoint := &mcpclient.Endpoint{URL: s.URL, Policy: func() (netguard.Policy, error) {
		return guard.Policy(func(ref string) (string, error) { return secret(ctx, ref) })
	}}
	// What is wrong with the ranges is wrong now; secrets may come later.
	shape := guard
	shape.Credentials = nil
	if _, err := shape.Policy(toolerror.Secret(ctx)); err != nil {
		return nil, fault(at, err.Error(), "")
	}
	return endpoint, nil
}

// Protected returns how a server of a configuration is reached, and how its tokens are had: both nil
// where there is no such server behind a URL, or none that takes tokens.
func Protected(ctx registry.Context, raw json.RawMessage, name string) (*mcpclient.Endpoint, *fleet.MCPAuth, error) {
	var conf config
	if err := json.Unmarshal(raw, &conf); err != nil {
		return nil, nil, err
	}
	s := conf.Servers[name]
	if s.OAuth == nil {
		return nil, nil, nil
	}
	o, err := (&Resolver{}).options(ctx, name, s)
	if err != nil {
		return nil, nil, err
	}
	a := *s.OAuth
	a.Grant = cmp.Or(a.Grant, fleet.GrantLogin)
	return o.URL, &a, nil
}

// access is what gets the tokens of a server.
func (s server) access(ctx registry.Context, name, at string, to *mcpclient.Endpoint) (mcpclient.Authorizer, error) {
	if s.OAuth == nil {
		return nil, nil
	}
	if slices.ContainsFunc(s.Credentials, func(c credential) bool { return c.Header == "" || strings.EqualFold(c.Header, "Authorization") }) {
		return nil, fault(at+"/oauth", "credentials have the header that the token would be in", "remove the one or the other")
	}
	a := *s.OAuth
	a.Grant = cmp.Or(a.Grant, fleet.GrantLogin)
	if key, message, hint := a.Fault(); key != "" {
		return nil, fault(at+"/oauth", key+": "+message, hint)
	}
	resolve := func(ref string) (string, error) { return secret(ctx, ref) }
	logins := mcpaccess.Logins{Dir: filepath.Join(ctx.StateDir, mcpaccess.Folder), Agent: envelope.AddressFor(ctx.Agent), Logger: ctx.Logger}
	return mcpaccess.To(name, &a, to, resolve, logins), nil
}

// secret resolves a reference, whenever a connection is made.
func secret(ctx registry.Context, ref string) (string, error) {
	if ctx.Secret == nil {
		return "", errors.New("there is nothing here to resolve references with")
	}
	return ctx.Secret(context.WithoutCancel(ctx.Context), ref)
}

func below(folder, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(folder, path)
}
