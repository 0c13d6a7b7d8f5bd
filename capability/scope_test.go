package capability

import (
	"strings"
	"testing"

	"github.com/agentd/agentd/internal/strictyaml"
)

// faultOf is the one fault of a list of scopes, or "".
func faultOf(t *testing.T, scope string, decode func(strictyaml.Value)) string {
	t.Helper()
	file, err := strictyaml.Parse("f.yaml", []byte("['"+scope+"']"))
	if err != nil {
		t.Fatal(err)
	}
	decode(file.Root())
	if err := file.Err(); err != nil {
		return err.Error()
	}
	return ""
}

// A permission has the words of its domain, or is of a domain that says it is its
// owner's. A typing error is answered with the word that was meant.
func TestPermissionWords(t *testing.T) {
	needed := func(v strictyaml.Value) { decodePermissions(v) }
	for scope, want := range map[string]string{
		// Those of the ARAL standard, and of its guide's examples.
		"network:read": "", "network:write": "", "filesystem:read": "", "filesystem:write": "", "database:read": "", "database:write": "",
		"secrets:read": "", "compute:execute": "", "http:read": "", "file:read": "", "email:send": "", "notify:send": "", "weather:read": "",
		"database:*": "", "x-billing:refund": "", "x-acme.billing:re-fund_2": "", "x-acme:*": "",

		"network:raed":                         `the scope "network:raed" matches nothing: the verbs of network are read and write (did you mean "network:read"?)`,
		"network:execute":                      "the verbs of network are read and write",
		"Network:read":                         `did you mean "network:read"? a domain of your own begins with x-`,
		"netwrok:raed":                         `did you mean "network:read"? a domain of your own begins with x-, such as x-netwrok:raed`,
		"billing:refund":                       `names no domain that agentd knows (a domain of your own begins with x-, such as x-billing:refund; agentd knows compute, database,`,
		"network":                              "a scope is <domain>:<verb>",
		"a:b:c":                                "a scope is <domain>:<verb>",
		"":                                     "must not be empty",
		":":                                    "names no domain",
		"network:":                             "matches nothing",
		"x-:read":                              "is no scope of an own domain",
		"x-a:":                                 "is no scope of an own domain",
		"x-A:read":                             "is no scope of an own domain",
		"x-a/b:read":                           "is no scope of an own domain",
		"network:[r]ead":                       "matches nothing",
		"**":                                   "is a pattern, and does not say what the skill needs",
		"*:read":                               "is a pattern",
		"net*:read":                            "is a pattern",
		"network:re*":                          "is a pattern",
		"x-" + strings.Repeat("a", 200) + ":b": "204 bytes, more than 128",
	} {
		if got := faultOf(t, scope, needed); want == "" && got != "" || !strings.Contains(got, want) || strings.Contains(got, "\n") {
			t.Errorf("%s: %q, want %q", scope, got, want)
		}
	}
}

// A grant may be a pattern, which must match something that a skill can need.
func TestGrantedPatterns(t *testing.T) {
	granted := func(v strictyaml.Value) {
		for _, item := range v.List() {
			CheckScope(item, item.Text())
		}
	}
	for scope, want := range map[string]string{
		"**": "", "network:*": "", "*:read": "", "*:*": "", "net*:read": "", "?etwork:**": "", "x-*:read": "", "x-acme.*:**": "", "network:read": "",
		"netz*:read":   "names no domain that agentd knows",
		"network:x*":   "matches nothing: the verbs of network are read and write",
		"*:raed":       `did you mean "*:read"?`,
		"network:raed": `did you mean "network:read"?`,
		"*":            "a scope is <domain>:<verb>",
	} {
		if got := faultOf(t, scope, granted); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", scope, got, want)
		}
	}
}
