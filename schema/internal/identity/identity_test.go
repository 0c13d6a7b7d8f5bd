package identity

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/schema/internal/jsontest"
)

func TestInternedValuesAreEqualOrNot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := jsontest.Value(t, 3), jsontest.Value(t, 3)
		if rapid.Bool().Draw(t, "same") {
			b = a
		}
		var table Table
		id := Identifier{Table: &table}
		textA, textB := jsontest.Spell(t, a), jsontest.Spell(t, b)
		idA, endA, _ := id.Identify([]byte(textA), 0)
		idB, endB, _ := id.Identify([]byte(textB), 0)
		if endA != len(textA) || endB != len(textB) {
			t.Fatalf("ends %d and %d of %q and %q", endA, endB, textA, textB)
		}
		if (idA == idB) != jsontest.Equal(t, a, b) {
			t.Fatalf("%s and %s have numbers %d and %d", textA, textB, idA, idB)
		}
		frozen := Identifier{Table: &table, Frozen: true}
		if again, _, ok := frozen.Identify([]byte(jsontest.Spell(t, a)), 0); !ok || again != idA {
			t.Fatalf("%s is not found again: %d, %v", textA, again, ok)
		}
	})
}

func TestFrozenTableTakesNothingIn(t *testing.T) {
	var table Table
	id := Identifier{Table: &table}
	id.Identify([]byte(`{"a":[1,"x"]}`), 0)
	before := len(table.entries)
	frozen := Identifier{Table: &table, Frozen: true}
	for _, text := range []string{
		`"y"`, `2`, `[]`, `{}`, `[1,"x",1]`, `{"a":1}`, `{"b":1}`, `{"a":[1,"x"],"a2":1}`, `["x",1]`, `true`,
		`"` + strings.Repeat("x", 1000) + `"`, `[` + strings.Repeat("1,", 1000) + `1]`, strings.Repeat("[", 100) + strings.Repeat("]", 100),
	} {
		if _, _, ok := frozen.Identify([]byte(text), 0); ok {
			t.Errorf("%s was found", text)
		}
	}
	if len(table.entries) != before || len(frozen.key) != 0 || len(frozen.pairs) != 0 {
		t.Error("looking up left traces")
	}
}

func TestInternerResetKeepsNothing(t *testing.T) {
	var table Table
	for round := range 3 {
		for i := range 1000 {
			if id := table.add(fmt.Appendf(nil, "%d", i)); int(id) != i {
				t.Fatalf("round %d: key %d has number %d", round, i, id)
			}
		}
		for i := range 1000 {
			if id, ok := table.find(fmt.Appendf(nil, "%d", i)); !ok || int(id) != i {
				t.Fatalf("round %d: key %d is found as %d, %v", round, i, id, ok)
			}
		}
		table.reset()
		if _, ok := table.find([]byte("7")); ok {
			t.Fatalf("round %d: a key survived the reset", round)
		}
	}
}
