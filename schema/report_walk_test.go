package schema

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/schema/internal/ir"
	"github.com/agentd/agentd/schema/internal/verdict"
)

// TestEndsOfLargeValues asks for the ends of nested arrays and objects, in any order, of
// which the answers must not depend on what was asked before.
func TestEndsOfLargeValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		closing := ""
		for range rapid.IntRange(1, 12).Draw(t, "depth") {
			text := `"` + strings.Repeat("]", rapid.IntRange(0, 200).Draw(t, "text")) + `"`
			if rapid.Bool().Draw(t, "object") {
				b.WriteString(`{"a":[{},` + text + `],"b":`)
				closing = "}" + closing
			} else {
				b.WriteString(`[` + text + `,[[],{"c":1}], `)
				closing = ` ]` + closing
			}
		}
		doc := []byte(b.String() + "0" + closing)
		if err := ijson.Check(doc, 100); err != nil {
			t.Fatal(err)
		}
		var starts []int
		for i := 0; i < len(doc); i++ {
			switch doc[i] {
			case '"':
				end, _, _ := ijson.ScanString(doc, i)
				i = end - 1
			case '[', '{':
				starts = append(starts, i)
			}
		}
		run := verdict.NewRun(&ir.Schema{})
		run.Begin(t.Context(), doc, verdict.DefaultSteps)
		p := &reporter{run: run, data: doc}
		for _, i := range rapid.Permutation(starts).Draw(t, "order") {
			if got, want := p.end(i), ijson.SkipValid(doc, i); got != want {
				t.Fatalf("the value at %d of %s ends at %d, want %d", i, doc, got, want)
			}
		}
	})
}
