package builtin_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/builtin"
)

// The capabilities register together, without the parts of a running agent, and an agent
// may list all of them at once: no two have a tool of one name.
func TestAll(t *testing.T) {
	known := registry.New()
	for _, r := range builtin.All(builtin.Deps{}) {
		if err := known.Register(r); err != nil {
			t.Error(err)
		}
	}
	owner := map[string]string{}
	var keys []string
	for _, c := range known.KnownCapabilities() {
		keys = append(keys, c.Key)
		for _, tool := range c.Tools {
			if other, taken := owner[tool.Key]; taken {
				t.Errorf("%s and %s both have the tool %s", other, c.Key, tool.Key)
			}
			owner[tool.Key] = c.Key
		}
		if len(c.Tools) == 0 && !c.PerAgent {
			t.Errorf("%s has no tools", c.Key)
		}
	}
	if got := strings.Join(keys, " "); got != "audio database files history http mail mcp memory notify peers tasks" {
		t.Errorf("what agentd ships is %s", got)
	}
}

func Example() {
	known := registry.New()
	for _, r := range builtin.All(builtin.Deps{}) {
		if err := known.Register(r); err != nil {
			fmt.Println(err)
		}
	}
	for _, c := range known.KnownCapabilities() {
		if c.Key == "history" {
			fmt.Println(c.Key, c.Tools[0].Key)
		}
	}
	// Output: history list_calls
}
