package skill_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/skill"
)

// A client of an earlier agentd looks for a control socket. The log says what to do, and
// the caller learns nothing of it.
func TestEarlierClients(t *testing.T) {
	t.Parallel()
	for _, says := range []string{
		"AgentdError: no-endpoint: AGENTD_SOCKET is not set; name a socket",                    // Python
		"AgentdError: no-endpoint: AGENTD_SOCKET is not set; name an endpoint",                 // TypeScript
		"skill failed: sdk: AGENTD_SOCKET is not set; start the skill through agentd (exit 1)", // Go
		"agentd: AGENTD_SOCKET and AGENTD_CALL are not set",                                    // another message altogether
	} {
		p := &skill.Process{Command: []string{"sh", "-c", `echo "$0" >&2; exit 1`, says}}
		_, err := p.Handle(t.Context(), invocation(`{}`))
		var public *rpc.SkillError
		if !errors.As(err, &public) || public.Message != "the skill exited with status 1" {
			t.Fatalf("%s: %v", says, err)
		}
		hinted := public.Err != nil && strings.Contains(public.Err.Error(), "generate it again with `agentd capabilities gen`")
		if want := strings.Contains(says, "AGENTD_SOCKET is not set"); hinted != want {
			t.Errorf("%s: %v", says, public.Err)
		}
	}
}
