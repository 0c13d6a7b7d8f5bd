package contain_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/agentd/agentd/schema/contain"
	"github.com/agentd/agentd/schema/internal/schematest"
)

// TestPatternsForgeNoForm compares a schema with a pattern whose characters are what the
// prover would write down of the schema's branches. It takes two schemas for the same if
// it writes the same down of both.
func TestPatternsForgeNoForm(t *testing.T) {
	const branches = 31 // so that their number reads as '>', and what follows has '?' bytes
	var list []string
	pattern := []byte{2 * branches}
	for form := 0; len(list) < branches; form++ {
		branch := fmt.Sprintf(`{"minLength":%d}`, 10+form)
		for strings.ContainsRune(`$(*.\^|`, rune(2*form)) { // not a character that stands for itself
			branch = `{"not":` + branch + `}`
			form++
		}
		list = append(list, branch)
		pattern = append(pattern, '?', byte(2*form))
	}
	quoted, err := json.Marshal(string(pattern))
	if err != nil {
		t.Fatal(err)
	}
	a := schematest.MustCompile(t, `{"minLength":1,"anyOf":[`+strings.Join(list, ",")+`]}`)
	b := schematest.MustCompile(t, `{"minLength":1,"pattern":`+string(quoted)+`}`)
	if c := contain.IsSubschema(a, b); c.Answer != contain.Refuted {
		t.Errorf("%v", c.Answer)
	}
}
