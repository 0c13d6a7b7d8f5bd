package mcptool

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/mcpaccess"
	"github.com/agentd/agentd/internal/mcpclient"
	"github.com/agentd/agentd/internal/netguard"
	"github.com/agentd/agentd/internal/secretref"
)

// Endpoint is how a server is reached that others run. An address that is written in its URL may
// be in any range. getenv is for references to secrets, which are resolved at each connection.
func Endpoint(s fleet.MCPServer, getenv func(string) string) *mcpclient.Endpoint {
	return &mcpclient.Endpoint{URL: s.URL, Policy: func() (netguard.Policy, error) {
		u, err := url.Parse(s.URL)
		if err != nil {
			return netguard.Policy{}, errors.New("the URL is none")
		}
		config := netguard.Config{Hosts: []string{u.Host}, AllowAddresses: slices.Clone(s.AllowAddresses), CAFile: s.CAFile}
		for _, prefix := range mcpaccess.Numbered(s.URL) {
			config.AllowAddresses = append(config.AllowAddresses, prefix.String())
		}
		for _, c := range s.Credentials {
			config.Credentials = append(config.Credentials, netguard.CredentialConfig{Host: u.Host, Header: c.Header, Scheme: c.Scheme, Secret: c.SecretRef})
		}
		return config.Policy(func(ref string) (string, error) { return secretref.Resolve(ref, getenv) })
	}}
}

// Variables are those of a file, each NAME=value, with secrets in the place of references.
func Variables(all []string, getenv func(string) string) ([]string, error) {
	out := make([]string, 0, len(all))
	for _, kv := range all {
		name, value, _ := strings.Cut(kv, "=")
		if secretref.Is(value) {
			secret, err := secretref.Resolve(value, getenv)
			if err != nil {
				return nil, fmt.Errorf("the variable %s: %w", name, err)
			}
			value = secret
		}
		out = append(out, name+"="+value)
	}
	return out, nil
}
