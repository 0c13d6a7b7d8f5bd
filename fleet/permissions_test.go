package fleet_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/agentd/agentd/fleet"
)

// A rule that can match nothing is refused: whoever wrote it relies on it.
func TestRulesThatWouldMatchNothingAreRefused(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"permissions: {deny: [agent://librarian/*]}", `write "RequestAgent:agent://librarian/*"`},
		{"permissions: {deny: [requestAgent:agent://librarian/*]}", "the tool is written RequestAgent:"},
		{"permissions: {deny: [RequestAgent]}", "the tool is written RequestAgent:"},
		{`permissions: {deny: ["RequestAgent:*"]}`, "use ** for any run of characters"},
		{"permissions: {allow: [RequestAgent:agent://librarian]}", "use ** for any run of characters"},
		{`permissions: {allow: [""]}`, "must not be empty"},
		{"permissions: {allow: [" + strings.Repeat("x", 513) + "]}", "513 bytes, more than 512"},
		{"permissions: {ask: ['RequestAgent:**', agent://b/c]}", "names no tool"},
		{"permissions: {deny: ['Bash:rm *']}", "the rule is about the tool \"Bash\", and would protect nothing"},
		{"permissions: {ask: [Bash]}", "would protect nothing"},
		{"permissions: {aks: [x]}", `did you mean "ask"`},
		{"scopes: [network]", "a scope is <domain>:<verb>"},
		{"security: {defaultPermissions: [a:b:c]}", "a scope is <domain>:<verb>"},
		{"scopes: [network:raed]", `did you mean "network:read"?`},
		{"security: {defaultPermissions: [x-A:b]}", "is no scope of an own domain"},
		{"rpc: {auth: {required: yes please}}", "a provider is not chosen here"},
		{"rpc: {auth: {required: 1}}", "expected a boolean"},
		{"rpc: {auth: {required: true, enabled: false}}", "two of them differ"},
		{"rpc: {auth: {require: true}}", `did you mean "required"`},
		{"rpc: {timeoutMs: 1}", "unknown key"},
		{"controlPlane: {auth: {enabled: true}}", "a Unix socket that only its user can open"},
		{"security: {requireAuth: yes please}", "expected a boolean"},
		{"security: {requiredAuth: true}", `did you mean "requireAuth"`},
		{"security: {identity: {}}", "keyFile"},
		{"security: {identity: {keyFile: keys/identity.json}}", "expected an absolute path"},
		{"security: {identity: {keyfile: /run/secrets/identity.json}}", `did you mean "keyFile"`},
	} {
		_, err := fleet.Load(starter().with(files{"agents/pr-reviewer/agent.yaml": "name: pr-reviewer\n" + test.text + "\n"}).root(t), fleet.LoadOptions{})
		var faults *fleet.LoadError
		if !errors.As(err, &faults) || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "agent.yaml:2:") {
			t.Errorf("%s: %v", test.text, err)
		}
	}
	for _, text := range []string{
		`permissions: {allow: ["**", "RequestAgent:**", "RequestAgent:agent://*/x", "Bash:git *"], deny: ["RequestAgent:agent://x/**", "**", "*:agent://x/y"], ask: ["Request*:**"]}`,
		"security: {requireAuth: true}\nrpc: {auth: {required: true, enabled: true}}",
		"rpc: {auth: {}}",
		`scopes: ["**", "*:read", network:*]`,
	} {
		if _, err := fleet.Load(starter().with(files{"agents/pr-reviewer/agent.yaml": "name: pr-reviewer\n" + text + "\n"}).root(t), fleet.LoadOptions{}); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The file of a mounted secret is outside of the fleet's files.
func TestKeyFile(t *testing.T) {
	a, err := agentWith(t, "security: {identity: {keyFile: /run/secrets/desk/identity.json}}")
	if err != nil || a.Security.KeyFile != "/run/secrets/desk/identity.json" {
		t.Errorf("%+v, %v", a, err)
	}
}
