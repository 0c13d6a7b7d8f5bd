package skill

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/agentd/agentd/rpc"
)

// maxVariableBytes bounds what a call can put into one variable of a program's
// environment. The kernel has a bound too, but its error names no variable.
const maxVariableBytes = 8 << 10

// callEnvironment returns the variables that describe to a program the call that it
// serves. Every one is set, if only to "": agentd may itself run inside of a skill,
// and that skill's call must not pass for this one.
//
// The values are the caller's words. What a variable cannot hold fails the call: to
// leave out a tenant or an idempotency key would let the program act for another.
func callEnvironment(inv *rpc.Invocation) ([]string, error) {
	deadline := ""
	if !inv.Deadline.IsZero() {
		deadline = strconv.FormatInt(inv.Deadline.UnixMilli(), 10)
	}
	variables := [...]struct{ name, value string }{
		{"AGENTD_CAPABILITY", inv.Capability},
		{"AGENTD_CALLER", string(inv.From)},
		{"AGENTD_CALLER_PROVEN", strconv.FormatBool(inv.Proven)},
		{"AGENTD_MESSAGE_ID", inv.MessageID},
		{"AGENTD_CORRELATION_ID", inv.CorrelationID},
		{"AGENTD_SESSION_ID", inv.SessionID},
		{"AGENTD_TENANT_ID", inv.TenantID},
		{"AGENTD_IDEMPOTENCY_KEY", inv.IdempotencyKey},
		{"AGENTD_TRACEPARENT", inv.Traceparent},
		// The name that OpenTelemetry gives it in environments, for programs that know
		// nothing of agentd.
		{"TRACEPARENT", inv.Traceparent},
		{"TRACESTATE", inv.Tracestate},
		{"AGENTD_HOPS", strconv.Itoa(max(inv.Hops, 1))},
		{"AGENTD_DEADLINE", deadline},
		// Without Calls there is no token, and that of an agentd around this one is
		// none.
		{"AGENTD_CALL", ""},
	}
	env := make([]string, 0, len(variables)+1)
	for _, v := range variables {
		if len(v.value) > maxVariableBytes || strings.Contains(v.value, "\x00") {
			return nil, &rpc.SkillError{Message: fmt.Sprintf(
				"%s cannot hold what the call says: it must have at most %d bytes, and no NUL", v.name, maxVariableBytes)}
		}
		env = append(env, v.name+"="+v.value)
	}
	return env, nil
}
