package nats

import "github.com/agentd/agentd/internal/secretref"

// The environment variables of [FromEnv].
const (
	// EnvURL is the servers, comma-separated; they may hold user and password.
	EnvURL = "AGENTD_NATS_URL"
	// EnvContext is Options.Context.
	EnvContext = "AGENTD_NATS_CONTEXT"
	// EnvCreds is Options.CredsFile.
	EnvCreds = "AGENTD_NATS_CREDS"
	// EnvNKey is Options.NKeySeedFile.
	EnvNKey = "AGENTD_NATS_NKEY"
	// EnvUser is Options.User.
	EnvUser = "AGENTD_NATS_USER"
	// EnvPassword is the password, or a reference to it.
	EnvPassword = "AGENTD_NATS_PASSWORD"
	// EnvToken is the token, or a reference to it.
	EnvToken = "AGENTD_NATS_TOKEN"
	// EnvCA is Options.CAFile.
	EnvCA = "AGENTD_NATS_CA"
	// EnvCert is Options.CertFile.
	EnvCert = "AGENTD_NATS_CERT"
	// EnvKey is Options.KeyFile.
	EnvKey = "AGENTD_NATS_KEY"
)

// FromEnv returns the options that the environment sets; all others are zero. Servers
// stays empty if [EnvURL] is not set: the agents' files then name the servers, unless
// [EnvContext] does.
//
// Secrets stay references: the environment is read when [Connect] resolves them.
func FromEnv(getenv func(string) string) Options {
	o := Options{
		Context: getenv(EnvContext), CredsFile: getenv(EnvCreds), NKeySeedFile: getenv(EnvNKey),
		User: getenv(EnvUser), Password: secretVariable(EnvPassword, getenv), Token: secretVariable(EnvToken, getenv),
		CAFile: getenv(EnvCA), CertFile: getenv(EnvCert), KeyFile: getenv(EnvKey), Getenv: getenv,
	}
	if getenv(EnvURL) != "" {
		o.Servers = []string{"env:" + EnvURL}
	}
	return o
}

// WithServers returns o with the given servers, unless o has servers of its own,
// directly or by its context.
func (o Options) WithServers(servers []string) Options {
	if len(o.Servers) == 0 && o.Context == "" {
		o.Servers = servers
	}
	return o
}

// secretVariable returns the reference in a variable, or, if the variable contains the
// secret itself, a reference to the variable.
func secretVariable(name string, getenv func(string) string) string {
	switch value := getenv(name); {
	case value == "":
		return ""
	case secretref.Is(value):
		return value
	default:
		return "env:" + name
	}
}
