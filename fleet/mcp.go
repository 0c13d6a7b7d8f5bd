package fleet

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/internal/secretref"
	"github.com/agentd/agentd/internal/strictyaml"
)

const (
	// maxMCPClient is the length of the longest name of a client.
	maxMCPClient = 32
	// defaultMCPPending is [MCP.MaxPending] if the file does not set it.
	defaultMCPPending = 64
)

// MostMCPPending is the highest [MCP.MaxPending].
const MostMCPPending = 1024

// An MCP configures the face of a member for clients of the Model Context Protocol: LLM
// clients, which call the member's peers in its name. The command `agentd mcp` serves it
// whatever the file says; a block mcp says how.
type MCP struct {
	// Listen is where the member serves it by HTTP as long as it runs, <host>:<port>; ""
	// for nowhere.
	Listen string
	// Open lets everybody in who can reach Listen, which is then a loopback address: the
	// key `auth: none`. Skills and other users of the machine can.
	Open bool
	// Bare leaves the peer out of the names of tools where that is unambiguous.
	Bare bool
	// Profile names the provider for whose limits schemas are projected, or is "".
	Profile string
	// RequestAgent adds the tool request_agent.
	RequestAgent bool
	// MaxPending bounds the calls of one client at a time. The default is 64.
	MaxPending int
	// Clients are those that the file names, in declared order. Where there are any, no
	// others are served.
	Clients []MCPClient
	// TLS is the certificate that Listen is served with; nil serves plain HTTP.
	TLS *MCPTLS
	// OAuth lets clients in by the tokens of an authorization server, or is nil.
	OAuth *MCPOAuth
	// Hosts are the names, besides that of Listen, that clients may call the server by, and
	// Origins the web pages that may.
	Hosts, Origins []string
}

// An MCPClient is one client of the face, a caller of its own in permissions, limits and
// records: MCP:<name>.
type MCPClient struct {
	// Name is 1 to 32 lower-case letters, digits and hyphens.
	Name string
	// Token is a reference to the bearer token by which HTTP requests are the client's, or
	// "".
	Token string
	// Subject and ClientID are the claims of OAuth tokens that are the client's, or "": sub, and
	// client_id or azp. A token has both where both are given.
	Subject, ClientID string
	// RateLimit bounds its calls over time. Nil is no limit.
	RateLimit *capability.RateLimit
	// MaxPending bounds its calls at a time, 0 for [MCP.MaxPending].
	MaxPending int
	// Position is where the entry stands.
	Position Position
}

// An MCPTLS is a certificate with its key, in PEM files.
type MCPTLS struct {
	// Cert and Key are absolute paths.
	Cert, Key string
}

// An MCPOAuth is the authorization server whose tokens are accepted (OAuth 2.1).
type MCPOAuth struct {
	// Issuer is its URL, as tokens name it, and Resource the URL that tokens for this face
	// name as their audience.
	Issuer, Resource string
	// Audiences are further ones that tokens may name.
	Audiences []string
	// Keys is the URL of its keys (a JWK Set), or "" for the one in its metadata.
	Keys string
	// Scopes are those that a token must have, each of them.
	Scopes []string
}

// AnonymousMCPClient is the client of requests without a token, where [MCP.Open] lets them
// in, and of a command that names none.
const AnonymousMCPClient = "local"

// Client returns the client of that name.
func (m *MCP) Client(name string) (MCPClient, bool) {
	i := slices.IndexFunc(m.Clients, func(c MCPClient) bool { return c.Name == name })
	if i < 0 {
		return MCPClient{}, false
	}
	return m.Clients[i], true
}

// Serves reports whether there is a client of that name: where the file lists none, every
// name is one.
func (m *MCP) Serves(name string) bool {
	_, listed := m.Client(name)
	return listed || m.Clients == nil
}

// IsMCPClient reports whether a client may have that name.
func IsMCPClient(name string) bool {
	for i := range len(name) {
		if c := name[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return name != "" && len(name) <= maxMCPClient
}

// decodeMCP reads the block mcp. Of the reference runtime's keys under that name, those
// that supervise servers are carried.
func decodeMCP(v strictyaml.Value, p paths) (m MCP, ignored []IgnoredKey) {
	m.MaxPending = defaultMCPPending
	switch v.Kind() {
	case strictyaml.Absent:
		return m, nil
	case strictyaml.Map:
	default: // a form of the reference runtime
		return m, []IgnoredKey{{Key: "mcp", Position: v.Position()}}
	}
	o := v.Object()
	defer o.Done()
	listen := o.Get("listen")
	m.Listen = decodeListen(listen)
	auth := o.Get("auth")
	m.Open = auth.Enum("none") == "none"
	m.Bare = o.Get("names").Enum("full", "bare") == "bare"
	m.Profile = o.Get("profile").Enum("openai-strict", "anthropic", "gemini")
	m.RequestAgent = o.Get("requestAgent").Bool()
	if n := o.Get("maxPending").Int(1, MostMCPPending); n != 0 {
		m.MaxPending = int(n)
	}
	m.Hosts, m.Origins = decodeHostNames(o.Get("hosts")), decodeOrigins(o.Get("origins"))
	m.TLS = decodeMCPTLS(o.Get("tls"), p)
	m.OAuth = decodeMCPOAuth(o.Get("oauth"))
	m.decodeClients(o.Get("clients"))
	if m.OAuth != nil && !slices.ContainsFunc(m.Clients, func(c MCPClient) bool { return c.Subject != "" || c.ClientID != "" }) {
		o.Get("oauth").Fault("no token of the authorization server would be any client's", "add clients: [{name: …, subject: …}], or clientId")
	} else {
		m.checkListen(listen, auth)
	}
	return m, ignore(o, "mcp.", "supervised", "servers")
}

// decodeListen reads an address to listen on.
func decodeListen(v strictyaml.Value) string {
	text := v.Text()
	if text == "" {
		return ""
	}
	const form = "<host>:<port>, such as 127.0.0.1:7411; port 0 is any free one"
	_, port, err := net.SplitHostPort(text)
	if err != nil {
		v.Fault(fmt.Sprintf("%q is no address to listen on", text), form)
		return ""
	}
	if _, err := netip.ParseAddrPort("127.0.0.1:" + port); err != nil {
		v.Fault(fmt.Sprintf("%q is no port", port), form)
		return ""
	}
	return text
}

// Loopback reports whether only this machine can reach an address to listen on.
func Loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// checkListen refuses a server that would let in whom nobody chose, or nobody.
func (m *MCP) checkListen(listen, auth strictyaml.Value) {
	tokens := slices.ContainsFunc(m.Clients, func(c MCPClient) bool { return c.Token != "" })
	switch {
	case m.Open && (tokens || m.OAuth != nil):
		auth.Fault("there are tokens, and auth: none asks nobody for one", "remove the one or the other")
	case m.Open && m.Clients != nil && !slices.ContainsFunc(m.Clients, func(c MCPClient) bool { return c.Name == AnonymousMCPClient }):
		auth.Fault("requests without a token are those of the client "+AnonymousMCPClient+", which clients does not list", "add {name: "+AnonymousMCPClient+"}")
	case m.Listen == "":
	case m.Open && !Loopback(m.Listen):
		auth.Fault("everybody on the network could call the agent's peers in its name", "give each client a token, or listen on a loopback address")
	case !Loopback(m.Listen) && m.TLS == nil:
		listen.Fault("tokens and payloads would cross the network in the clear", "add tls: {cert: …, key: …}, or listen on a loopback address and put a proxy before it")
	case !Loopback(m.Listen) && m.Hosts == nil && m.OAuth == nil:
		listen.Fault("beyond this machine, the server has to know its names, so that no web page reaches it by another", "add hosts: [mcp.example.com]")
	case !m.Open && !tokens && m.OAuth == nil:
		listen.Fault("no client could prove who it is", "add clients: [{name: …, token: env:…}], or, on a machine of your own, auth: none")
	}
}

// decodeClients reads the list of clients. A name and a token are one client's.
func (m *MCP) decodeClients(v strictyaml.Value) {
	taken := newTaken()
	for _, item := range v.AtLeastOne("client").List() {
		c := decodeMCPClient(item, m.OAuth != nil)
		m.Clients = append(m.Clients, c)
		taken.check(item, c.Name, c.Token)
	}
}

// decodeMCPClient reads one client.
func decodeMCPClient(item strictyaml.Value, oauth bool) MCPClient {
	o := item.Object()
	defer o.Done()
	subject, id := o.Get("subject"), o.Get("clientId")
	c := MCPClient{
		Name: decodeClientName(o.Need("name")), Token: decodeClientToken(o.Get("token")), Subject: subject.Text(), ClientID: id.Text(),
		RateLimit: decodeClientLimit(o.Get("rateLimit")), MaxPending: int(o.Get("maxPending").Int(1, MostMCPPending)), Position: item.Position(),
	}
	for _, claim := range []strictyaml.Value{subject, id} {
		if claim.Present() && !oauth {
			claim.Fault("no authorization server is named whose tokens would have it", "add oauth: {issuer: …, resource: …}")
		}
	}
	return c
}

// decodeMCPTLS reads the certificate; nil if there is none.
func decodeMCPTLS(v strictyaml.Value, p paths) *MCPTLS {
	if !v.Present() {
		return nil
	}
	o := v.Object()
	defer o.Done()
	return &MCPTLS{Cert: p.carried(o.Need("cert")), Key: p.carried(o.Need("key"))}
}

// decodeMCPOAuth reads the authorization server; nil if there is none.
func decodeMCPOAuth(v strictyaml.Value) *MCPOAuth {
	if !v.Present() {
		return nil
	}
	o := v.Object()
	defer o.Done()
	return &MCPOAuth{
		Issuer: decodeServerURL(o.Need("issuer")), Resource: decodeServerURL(o.Need("resource")), Keys: decodeServerURL(o.Get("keys")),
		Audiences: o.Get("audiences").Texts(), Scopes: o.Get("scopes").Texts(),
	}
}

// decodeServerURL reads the URL of a server: https, or http on this machine.
func decodeServerURL(v strictyaml.Value) string {
	text := v.Text()
	if text == "" {
		return ""
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || u.RawQuery != "":
		v.Fault(fmt.Sprintf("%.128q is no URL of a server", text), "such as https://login.example.com")
	case u.Scheme != "https" && (u.Scheme != "http" || !Loopback(net.JoinHostPort(u.Hostname(), "80"))):
		v.Fault("the URL is not https", "only a server on this machine may be reached by http")
	}
	return text
}

// decodeHostNames reads names that clients call the server by.
func decodeHostNames(v strictyaml.Value) []string {
	hosts := v.Texts()
	for i, item := range v.List() {
		if host := hosts[i]; strings.ContainsAny(host, "/*@ ") {
			item.Fault(fmt.Sprintf("%.128q is no name of a host", host), "such as mcp.example.com or mcp.example.com:8443")
		}
	}
	return hosts
}

// decodeOrigins reads the origins of web pages.
func decodeOrigins(v strictyaml.Value) []string {
	origins := v.Texts()
	for i, item := range v.List() {
		u, err := url.Parse(origins[i])
		if err != nil || u.Host == "" || u.Scheme+"://"+u.Host != origins[i] {
			item.Fault(fmt.Sprintf("%.128q is no origin", origins[i]), "<scheme>://<host>[:<port>], such as https://inspector.example.com")
		}
	}
	return origins
}

// SecretFiles are the paths of the secrets that the block names: no skill may read them.
func (m *MCP) SecretFiles() (paths []string) {
	for _, c := range m.Clients {
		paths = append(paths, secretref.Files(c.Token)...)
	}
	if m.TLS != nil {
		paths = append(paths, m.TLS.Key)
	}
	return paths
}

// files are the paths of the files that the block names.
func (m *MCP) files() []string {
	paths := m.SecretFiles()
	if m.TLS != nil {
		paths = append(paths, m.TLS.Cert)
	}
	return paths
}
