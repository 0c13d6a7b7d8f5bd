package fleet

import (
	"fmt"
	"slices"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/internal/secretref"
	"github.com/agentd/agentd/internal/strictyaml"
)

// A Control configures the control API of a member for programs that are no operators: over TCP,
// as long as the member runs. The operator's is a Unix socket, whatever the file says.
type Control struct {
	// Listen is where the member serves it, <host>:<port>; "" for nowhere.
	Listen string
	// Clients are those that it serves, in declared order.
	Clients []ControlClient
	// TLS is the certificate that Listen is served with; nil serves plain HTTP.
	TLS *MCPTLS
	// Hosts are the names, besides loopback addresses, that clients may call the server by.
	Hosts []string
	// MaxPending bounds the calls of one client at a time. The default is 64.
	MaxPending int
}

// A ControlClient is one client of the control API, a caller of its own in permissions, limits
// and records: CLIENT:<name>.
type ControlClient struct {
	// Name is 1 to 32 lower-case letters, digits and hyphens.
	Name string
	// Token is a reference to the bearer token by which requests are the client's.
	Token string
	// Tenants are those that it may call for, with [envelope.NoTenant] for calls that name none.
	// Nil permits the latter only.
	Tenants []string
	// RateLimit bounds its calls over time. Nil is no limit.
	RateLimit *capability.RateLimit
	// MaxPending bounds its calls at a time, 0 for [Control.MaxPending].
	MaxPending int
	// Position is where the entry stands.
	Position Position
}

// Client returns the client of that name.
func (c *Control) Client(name string) (ControlClient, bool) {
	i := slices.IndexFunc(c.Clients, func(one ControlClient) bool { return one.Name == name })
	if i < 0 {
		return ControlClient{}, false
	}
	return c.Clients[i], true
}

// SecretFiles are the paths of the secrets that the block names: no skill may read them.
func (c *Control) SecretFiles() (paths []string) {
	for _, one := range c.Clients {
		paths = append(paths, secretref.Files(one.Token)...)
	}
	if c.TLS != nil {
		paths = append(paths, c.TLS.Key)
	}
	return paths
}

// files are the paths of the files that the block names.
func (c *Control) files() []string {
	paths := c.SecretFiles()
	if c.TLS != nil {
		paths = append(paths, c.TLS.Cert)
	}
	return paths
}

// decodeControl reads the block control.
func decodeControl(v strictyaml.Value, p paths) (c Control) {
	c.MaxPending = defaultMCPPending
	if !v.Present() {
		return c
	}
	o := v.Object()
	defer o.Done()
	listen := o.Get("listen")
	c.Listen = decodeListen(listen)
	c.Hosts, c.TLS = decodeHostNames(o.Get("hosts")), decodeMCPTLS(o.Get("tls"), p)
	if n := o.Get("maxPending").Int(1, MostMCPPending); n != 0 {
		c.MaxPending = int(n)
	}
	taken := newTaken()
	for _, item := range o.Get("clients").AtLeastOne("client").List() {
		one := decodeControlClient(item)
		c.Clients = append(c.Clients, one)
		taken.check(item, one.Name, one.Token)
	}
	switch {
	case c.Listen == "":
	case !Loopback(c.Listen) && c.TLS == nil:
		listen.Fault("tokens and payloads would cross the network in the clear", "add tls: {cert: …, key: …}, or listen on a loopback address and put a proxy before it")
	case !Loopback(c.Listen) && c.Hosts == nil:
		listen.Fault("beyond this machine, the server has to know its names, so that no web page reaches it by another", "add hosts: [agents.example.com]")
	case len(c.Clients) == 0:
		listen.Fault("no client could prove who it is", "add clients: [{name: …, token: env:…}]")
	}
	return c
}

// decodeControlClient reads one client.
func decodeControlClient(item strictyaml.Value) ControlClient {
	o := item.Object()
	defer o.Done()
	limit := o.Get("rateLimit")
	return ControlClient{
		Name: decodeClientName(o.Need("name")), Token: decodeClientToken(o.Need("token")), Tenants: decodeTenants(o.Get("tenants"), true),
		RateLimit: decodeClientLimit(limit), MaxPending: int(o.Get("maxPending").Int(1, MostMCPPending)), Position: item.Position(),
	}
}

// decodeClientName reads the name of a client, which stands in rules of permissions.
func decodeClientName(v strictyaml.Value) string {
	name := v.Text()
	if name != "" && !IsMCPClient(name) {
		v.Fault(fmt.Sprintf("%.64q cannot name a client", name), "1 to 32 lower-case letters, digits and hyphens, such as claude-code")
	}
	return name
}

// decodeClientToken reads the reference to a client's token; "" for what is none.
func decodeClientToken(v strictyaml.Value) string {
	token := v.Text()
	if token != "" && !secretref.Is(token) {
		v.Fault(secretref.ErrLiteral.Error(), "such as env:CLAUDE_CODE_TOKEN") // without the text, which may be one
		return ""
	}
	return token
}

// decodeClientLimit reads the rate limit of a client.
func decodeClientLimit(v strictyaml.Value) *capability.RateLimit {
	limit := capability.DecodeRateLimit(v)
	if limit != nil && limit.Shared {
		v.Fault("the limits of clients are not shared by replicas", "remove shared")
	}
	return limit
}

// A takenNames finds names and tokens that two clients share.
type takenNames map[string]map[string]string

func newTaken() takenNames { return takenNames{"name": {}, "token": {}} }

// check reports what the client of an entry shares with one before it.
func (t takenNames) check(item strictyaml.Value, name, token string) {
	if item.Kind() != strictyaml.Map {
		return
	}
	o := item.Object()
	for key, value := range map[string]string{"name": name, "token": token} {
		if other, twice := t[key][value]; twice && value != "" {
			o.Get(key).Fault(fmt.Sprintf("it is the %s of the client %q already", key, other), "no two clients share one")
		}
		t[key][value] = name
	}
}

// checkControlRules reports rules about clients that the block control does not list.
func (a *AgentFile) checkControlRules(permissions strictyaml.Value) {
	if a.Permissions == nil {
		return
	}
	var known []string
	for _, c := range a.Control.Clients {
		known = append(known, c.Name)
	}
	a.Permissions.Control.checkKnown(permissions, ClientTool, "control.clients", known)
}
