package daemon

import (
	"slices"
	"testing"

	"github.com/agentd/agentd/fleet"
)

// A skill gets what it names of the .env files, unless agentd's own environment has
// it: that is passed on as it is.
func TestNamedVariables(t *testing.T) {
	files := []fleet.Variable{{Name: "TOKEN", Value: "t"}, {Name: "DB_HOST", Value: "h"}, {Name: "DB_USER", Value: ""}, {Name: "OTHER", Value: "o"}, {Name: "DB_HOST", Value: "later"}}
	own := map[string]string{"DB_PASSWORD": "own", "PRESET": ""}
	look := func(name string) (string, bool) { v, ok := own[name]; return v, ok }
	for _, test := range []struct{ inherit, want []string }{
		{nil, nil},
		{[]string{"TOKEN"}, []string{"TOKEN=t"}},
		{[]string{"DB_*"}, []string{"DB_HOST=h", "DB_USER=", "DB_HOST=later"}},
		{[]string{"TOKE", "OTHE"}, nil},
		{[]string{"TOKEN", "T*"}, []string{"TOKEN=t"}},
	} {
		if got := namedVariables(&fleet.Process{InheritEnv: test.inherit}, files, look); !slices.Equal(got, test.want) {
			t.Errorf("%q: %q, want %q", test.inherit, got, test.want)
		}
	}
	own["TOKEN"] = ""
	if got := namedVariables(&fleet.Process{InheritEnv: []string{"TOKEN"}}, files, look); got != nil {
		t.Errorf("a variable that is set replaces agentd's own: %q", got)
	}
}
