package netguard

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"
)

// A Config is a [Policy] as the agent's files write it. Secrets are references.
type Config struct {
	Hosts          []string           `json:"hosts"`
	AllowAddresses []string           `json:"allowAddresses,omitempty"`
	ContentTypes   []string           `json:"contentTypes,omitempty"`
	Credentials    []CredentialConfig `json:"credentials,omitempty"`
	CAFile         string             `json:"caFile,omitempty"` // PEM: in place of the system's authorities
	TimeoutMs      int64              `json:"timeoutMs,omitempty"`
	MaxBytes       int64              `json:"maxBytes,omitempty"`
	MaxRedirects   *int               `json:"maxRedirects,omitempty"`
}

// A CredentialConfig is a [Credential] whose value is a reference, such as env:TOKEN.
type CredentialConfig struct {
	Host   string `json:"host"`
	Header string `json:"header"`           // "Authorization" if empty
	Scheme string `json:"scheme,omitempty"` // put before the secret, as in "Bearer"
	Secret string `json:"secret"`
}

// ConfigSchema is the JSON Schema of a [Config].
const ConfigSchema = `{
  "type": "object",
  "properties": {
    "hosts": {"type": "array", "items": {"type": "string"}, "minItems": 1},
    "allowAddresses": {"type": "array", "items": {"type": "string"}},
    "contentTypes": {"type": "array", "items": {"type": "string"}},
    "credentials": {"type": "array", "items": {
      "type": "object",
      "properties": {
        "host": {"type": "string"},
        "header": {"type": "string"},
        "scheme": {"type": "string"},
        "secret": {"type": "string"}
      },
      "required": ["host", "secret"],
      "additionalProperties": false
    }},
    "caFile": {"type": "string"},
    "timeoutMs": {"type": "integer", "minimum": 1, "maximum": 600000},
    "maxBytes": {"type": "integer", "minimum": 1, "maximum": 67108864},
    "maxRedirects": {"type": "integer", "minimum": 0, "maximum": 20}
  },
  "required": ["hosts"],
  "additionalProperties": false
}`

// Policy resolves the references and reads the files that c names. It is an error if a
// secret is there, but not what a reference leads to.
func (c Config) Policy(secret func(ref string) (string, error)) (Policy, error) {
	p := Policy{
		Hosts:        c.Hosts,
		ContentTypes: c.ContentTypes,
		Timeout:      time.Duration(c.TimeoutMs) * time.Millisecond,
		MaxBodyBytes: c.MaxBytes,
	}
	if c.MaxRedirects != nil {
		p.MaxRedirects = *c.MaxRedirects
		if p.MaxRedirects == 0 {
			p.MaxRedirects = -1 // none, where 0 of a Policy is the default
		}
	}
	for _, text := range c.AllowAddresses {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return p, fmt.Errorf("allowAddresses: %q is no range of addresses: write it as 10.1.2.0/24", text)
		}
		p.AllowAddresses = append(p.AllowAddresses, prefix)
	}
	for i, cred := range c.Credentials {
		if secret == nil {
			return p, errors.New("credentials: there is nothing here to resolve references with")
		}
		value, err := secret(cred.Secret)
		if err != nil {
			return p, fmt.Errorf("credentials[%d]: %w", i, err)
		}
		if cred.Scheme != "" {
			value = cred.Scheme + " " + value
		}
		if cred.Header == "" {
			cred.Header = "Authorization"
		}
		p.Credentials = append(p.Credentials, Credential{Host: cred.Host, Header: cred.Header, Value: value})
	}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return p, fmt.Errorf("caFile: %w", err)
		}
		p.RootCAs = x509.NewCertPool()
		if !p.RootCAs.AppendCertsFromPEM(pem) {
			return p, fmt.Errorf("caFile: %s has no certificate in PEM", c.CAFile)
		}
	}
	return p, nil
}
