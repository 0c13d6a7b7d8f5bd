package mcpaccess

import (
	"log/slog"
	"net/netip"
	"net/url"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/mcpauth"
	"github.com/agentd/agentd/internal/mcpclient"
	"github.com/agentd/agentd/internal/netguard"
)

// Folder is the folder of logins in an agent's state.
const Folder = "mcp-logins"

// Logins are where an agent keeps its logins at servers.
type Logins struct {
	Dir    string
	Agent  envelope.Address
	Logger *slog.Logger // or nil
}

// Store is what they are read and written by.
func (l Logins) Store() mcpauth.Store { return mcpauth.Store{Dir: l.Dir, Agent: string(l.Agent)} }

// To returns what gets the tokens of a server; nil where a is nil, for one that takes none.
func To(name string, a *fleet.MCPAuth, at *mcpclient.Endpoint, resolve func(ref string) (string, error), l Logins) mcpclient.Authorizer {
	if a == nil {
		return nil
	}
	c := Config(name, a, at, resolve, l)
	if a.Grant == fleet.GrantLogin {
		return mcpauth.NewPerson(c, l.Store())
	}
	return mcpauth.NewMachine(c)
}

// Config turns what a file says about the access to a server into what package mcpauth needs.
// resolve is asked for a secret each time that it is used.
func Config(name string, a *fleet.MCPAuth, at *mcpclient.Endpoint, resolve func(ref string) (string, error), l Logins) mcpauth.Config {
	secret := func(ref string) func() (string, error) {
		if ref == "" {
			return nil
		}
		return func() (string, error) { return resolve(ref) }
	}
	policy := func() (netguard.Policy, error) {
		p, err := at.Policy()
		p.AllowAddresses = append(p.AllowAddresses, Numbered(a.Issuer)...)
		return p, err
	}
	return mcpauth.Config{
		Name: name, URL: at.URL, Policy: policy, Issuer: a.Issuer, ClientID: a.ClientID,
		Secret: secret(a.ClientSecret), Key: secret(a.PrivateKey), Assertion: secret(a.Assertion),
		Method: a.Method, KeyID: a.KeyID, Algorithm: a.Algorithm, Document: a.ClientMetadata, Scopes: a.Scopes,
		Remedy: "agentd mcp login --agent " + l.Agent.ID() + " " + name, Logger: l.Logger,
	}
}

// Numbered is the address that is written in a URL: whoever writes one means it.
func Numbered(text string) []netip.Prefix {
	u, err := url.Parse(text)
	if err != nil {
		return nil
	}
	addr, err := netip.ParseAddr(u.Hostname())
	if err != nil {
		return nil
	}
	return []netip.Prefix{netip.PrefixFrom(addr, addr.BitLen())}
}
