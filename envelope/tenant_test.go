package envelope_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/agentd/agentd/envelope"
)

// Names become keys, columns and command-line arguments of others: what could do harm
// there is no name.
func TestCheckTenant(t *testing.T) {
	for name, valid := range map[string]bool{
		"acme": true, "0": true, "__default__": true, "a.b-c_d": true, strings.Repeat("a", envelope.MaxTenantBytes): true, "defaults": true,
		"": false, strings.Repeat("a", envelope.MaxTenantBytes+1): false, "default": false, "evil/../../x": false, "../x": false, "a..b": false,
		".a": false, "-a": false, "Acme": false, "a b": false, "a/b": false, "a\n": false, "a\x00": false, "*": false, "a>": false, "é": false,
	} {
		err := envelope.CheckTenant(name)
		if (err == nil) != valid {
			t.Errorf("%q: %v", name, err)
		}
		if bad, ok := errors.AsType[*envelope.TenantError](err); !valid && (!ok || bad.Reason == "" || len(bad.Input) > envelope.MaxTenantBytes) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
