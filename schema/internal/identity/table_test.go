package identity

import (
	"fmt"
	"testing"

	"github.com/agentd/agentd/schema/internal/hashtable"
)

// TestInternerTrim gives up the memory of large payloads and only that, and
// forgets the values in either case.
func TestInternerTrim(t *testing.T) {
	for _, c := range []struct {
		name string
		keys int
		size int
		kept bool
	}{
		{"few", 10, 8, true}, {"as many as are kept", hashtable.MaxKept * 3 / 4, 8, true}, {"one more", hashtable.MaxKept*3/4 + 1, 8, false}, {"long ones", 3, maxKeptBytes / 2, false},
	} {
		var table Table
		key := func(i int) []byte { return fmt.Appendf(nil, "%0*d", c.size, i) }
		for i := range c.keys {
			table.add(key(i))
		}
		table.Trim()
		if (table.numbers.Size() > 0) != c.kept {
			t.Errorf("%s: kept %v", c.name, !c.kept)
		}
		if _, found := table.find(key(0)); found || len(table.entries) != 0 || len(table.arena) != 0 || table.longest != 0 {
			t.Errorf("%s: a value survived", c.name)
		}
		if id := table.add(key(1)); id != 0 {
			t.Errorf("%s: the first value has number %d", c.name, id)
		}
		if _, found := table.find(key(0)); found {
			t.Errorf("%s: a value came back", c.name)
		}
	}
}
