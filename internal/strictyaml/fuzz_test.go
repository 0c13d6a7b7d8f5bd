package strictyaml_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/internal/strictyaml"
)

// FuzzParse: whatever the file holds, the answer is an *Error or JSON that a
// strict reader accepts, and that reads back as itself.
func FuzzParse(f *testing.F) {
	for _, s := range []string{sample, "a: &x [1, *x]\n", "- 0x1_0\n- .5\n- !!int 3\n", `{"a": [1, "é", null], "b": {"c": 1e400}}`, "? {a: b}\n: c\n", "%TAG ! x\n--- !y\n", "\"\\ud800\"", "a: |+\n\n  x\n...\n"} {
		f.Add(s, false)
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, src string, asJSON bool) {
		name := "f.yaml"
		if asJSON {
			name = "f.json"
		}
		file, err := strictyaml.Parse(name, []byte(src))
		if err == nil {
			err = file.Err()
		}
		if err != nil {
			var e *strictyaml.Error
			if !errors.As(err, &e) || len(e.Faults) == 0 {
				t.Fatalf("not an *Error with faults: %v", err)
			}
			return
		}
		out := file.Root().AppendJSON(nil)
		if err := ijson.Check(out, 2*strictyaml.MaxDepth); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		if asJSON && !json.Valid([]byte(src)) && src[0] != 0xef {
			t.Fatalf("%q is no JSON, but was read as %s", src, out)
		}
		again, err := strictyaml.Parse("f.json", out)
		if err != nil {
			t.Fatal(err)
		}
		if twice := again.Root().AppendJSON(nil); string(twice) != string(out) {
			t.Fatalf("read back as %s, was %s", twice, out)
		}
	})
}
