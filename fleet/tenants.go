package fleet

import (
	"errors"
	"fmt"
	"slices"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/strictyaml"
)

// decodeTenants reads a list of tenants; nil if there is none. none permits
// [envelope.NoTenant], for calls that name no tenant.
func decodeTenants(v strictyaml.Value, none bool) []string {
	if !v.Present() {
		return nil
	}
	// Not nil: an empty list serves nobody.
	tenants := []string{}
	for _, item := range v.List() {
		name := item.Text()
		err := envelope.CheckTenant(name)
		switch {
		case name == "" || none && name == envelope.NoTenant: // the first is a fault already
		case name == envelope.NoTenant:
			item.Fault(fmt.Sprintf("%q stands for calls that name no tenant, and those claim nothing", name), "leave it out: agent.yaml says whether such calls are served")
		case err != nil:
			hint := "small letters, digits, _ . and -, such as acme"
			if bad, ok := errors.AsType[*envelope.TenantError](err); ok && slices.Contains([]byte(bad.Input), '/') {
				hint = "write the tenants' names: agentd reads no files of tenants"
			}
			item.Fault(err.Error(), hint)
		case slices.Contains(tenants, name):
			item.Fault(fmt.Sprintf("the tenant %q is listed twice", name), "")
		}
		tenants = append(tenants, name)
	}
	return tenants
}
