package daemon

import (
	"strings"
	"testing"

	"github.com/agentd/agentd/registry"
)

// Each trouble with a server has the words of its own kind.
func TestUsedConditions(t *testing.T) {
	t.Parallel()
	for code, row := range map[string]struct {
		tools          []string
		effect, remedy string
	}{
		"away":                {[]string{"mcp__issues__list"}, "calls of mcp__issues__list are refused", "it ends by itself"},
		"login":               {[]string{"mcp__issues__list"}, "lets nobody in without a login", "log in"},
		"changed":             {[]string{"mcp__issues__list"}, "calls of mcp__issues__list are refused", "agentd registry pin"},
		"description-changed": {nil, "a description that nobody has read", "agentd registry pin"},
	} {
		c := usedCondition(registry.Trouble{Subject: "issues", Code: code, Tools: row.tools})
		if !c.Advisory || !strings.Contains(c.Effect, row.effect) || !strings.Contains(c.Remedy, row.remedy) {
			t.Errorf("%s: %+v", code, c)
		}
	}
}
