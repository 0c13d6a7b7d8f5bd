package codegen_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/codegen"
	"github.com/agentd/agentd/codegen/internal/ident"
	"github.com/agentd/agentd/codegen/internal/model"
	"github.com/agentd/agentd/codegen/internal/source"
	"github.com/agentd/agentd/schema"
)

const (
	soundnessSeed  = 8
	soundnessCases = 110 // besides the corpus
)

// soundnessContracts are the contracts that every language is tested with: random ones,
// and those of the corpus. Nobody changes them.
var soundnessContracts = sync.OnceValue(func() []contract {
	return append(contracts(soundnessSeed, soundnessCases), corpusContracts()...)
})

// document is a document with a capability for each contract.
func document(t *testing.T, contracts []contract) *capability.Document {
	t.Helper()
	doc, err := capability.Parse("fuzz.json", capabilities(contracts), capability.LoadOptions{ValidateSchemas: true})
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// generate writes the client of contracts in one language.
func generate(t *testing.T, lang string, contracts []contract) []byte {
	t.Helper()
	l, err := codegen.Find(lang)
	if err != nil {
		t.Fatal(err)
	}
	api, err := codegen.NewAPI(document(t, contracts))
	if err != nil {
		t.Fatal(err)
	}
	return l.Standalone().Generate(api).Content
}

func typeName(c contract) string { return ident.Pascal(c.name) + "Request" }

// What a schema accepts, TypeScript does; what it refuses for a reason that
// types know, TypeScript refuses.
func TestTypeScriptIsSound(t *testing.T) {
	t.Parallel()
	nodeTool(t, "typescript", "bin", "tsc")
	all := soundnessContracts()
	var values bytes.Buffer
	fmt.Fprintln(&values, `import type * as api from "./fuzz";`)
	valid, refused := 0, 0
	for _, c := range all {
		for _, v := range c.values {
			fmt.Fprintf(&values, "// %+q\nexport const v%d: api.%s = %s;\n", c.source, valid, typeName(c), v)
			valid++
		}
		for _, v := range c.invalid() {
			fmt.Fprintf(&values, "// %+q\n// @ts-expect-error\nexport const i%d: api.%s = %s;\n", c.source, refused, typeName(c), v)
			refused++
		}
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "fuzz.ts"), generate(t, "ts", all))
	write(t, filepath.Join(dir, "values.ts"), values.Bytes())
	for _, exact := range []bool{false, true} {
		tsc(t, exact, filepath.Join(dir, "fuzz.ts"), filepath.Join(dir, "values.ts"))
	}
	enough(t, valid, refused)
}

func enough(t *testing.T, valid, refused int) {
	t.Helper()
	t.Logf("%d valid values accepted, %d invalid ones refused", valid, refused)
	if valid < 2*soundnessCases || refused < soundnessCases/3 {
		t.Errorf("too few values to say anything")
	}
}

func TestPythonIsSound(t *testing.T) {
	t.Parallel()
	nodeTool(t, "pyright", "index.js")
	dir := t.TempDir()
	valid, refused := soundnessPython(t, dir)
	pyright(t, dir)
	enough(t, valid, 2*refused)
}

// soundnessPython writes to dir the types of random schemas, and a module that gives them
// values: valid ones, and invalid ones that a checker is to refuse.
func soundnessPython(t *testing.T, dir string) (valid, refused int) {
	t.Helper()
	all := soundnessContracts()
	var values bytes.Buffer
	fmt.Fprintln(&values, "import fuzz")
	for _, c := range all {
		for _, v := range c.plain {
			fmt.Fprintf(&values, "# %+q\nv%d: fuzz.%s = %s\n", c.source, valid, typeName(c), pythonLiteral(t, v))
			valid++
		}
		if more, ok := c.schema.Root().Additional(); !ok || !isFalse(more) {
			continue // where others are typed, Python has a plain dict
		}
		for _, v := range c.invalid() {
			fmt.Fprintf(&values, "# %+q\ni%d: fuzz.%s = %s  # type: ignore\n", c.source, refused, typeName(c), pythonLiteral(t, v))
			refused++
		}
	}
	write(t, filepath.Join(dir, "fuzz.py"), generate(t, "python", all))
	write(t, filepath.Join(dir, "values.py"), values.Bytes())
	return valid, refused
}

func isFalse(n schema.Node) bool {
	accepts, ok := n.Boolean()
	return ok && !accepts
}

// pythonLiteral writes a JSON value as Python does.
func pythonLiteral(t *testing.T, text string) string {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return pythonValue(v)
}

func pythonValue(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return ident.Pascal(fmt.Sprint(v))
	case json.Number:
		if r, ok := new(big.Rat).SetString(v.String()); ok && r.IsInt() {
			return r.Num().String() // 2.0 and 1e21 are integers, and floats to Python
		}
		return v.String()
	case string:
		return source.Quote(v, func(r rune) string { return fmt.Sprintf(`\U%08x`, r) })
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = pythonValue(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	var parts []string
	for name, e := range v.(map[string]any) {
		parts = append(parts, pythonValue(name)+": "+pythonValue(e))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// goProgram decodes one line of standard input after the other with the type
// that it names, and says what it encodes that to.
const goProgram = `package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/agentd/agentd/codegen/testdata/soundness/fuzz"
	"github.com/agentd/agentd/codegen/typed"
)

func codec[T any](data []byte) ([]byte, error) {
	var v T
	if err := typed.Unmarshal(data, &v); err != nil {
		return nil, err
	}
	return typed.Marshal(v)
}

func main() {
	codecs := map[string]func([]byte) ([]byte, error){
%s	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var line struct {
			Type  string
			Value json.RawMessage
		}
		if err := json.Unmarshal(in.Bytes(), &line); err != nil {
			panic(err)
		}
		if out, err := codecs[line.Type](line.Value); err != nil {
			fmt.Println("error:", err)
		} else {
			fmt.Printf("%%s\n", out)
		}
	}
}
`

// Valid values go through the Go types and come out as they were; invalid ones
// do not go in.
func TestGoIsSound(t *testing.T) {
	t.Parallel()
	all := soundnessContracts()
	type question struct {
		contract contract
		value    string
		valid    bool
	}
	var questions []question
	var codecs strings.Builder
	var stdin bytes.Buffer
	api, err := model.New(document(t, all))
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range all {
		pointer := ""
		if _, nullable := api.Capabilities[i].Request.Type.Nullable(); nullable {
			pointer = "*" // the name is of what is not null
		}
		fmt.Fprintf(&codecs, "\t\t%q: codec[%sfuzz.%s],\n", c.name, pointer, typeName(c))
		for _, v := range append(c.values, c.plain...) {
			questions = append(questions, question{c, v, true})
		}
		for _, v := range c.invalid() {
			questions = append(questions, question{c, v, false})
		}
	}
	for _, q := range questions {
		fmt.Fprintf(&stdin, "{\"type\":%q,\"value\":%s}\n", q.contract.name, q.value)
	}
	binary := buildGo(t, generate(t, "go", all), fmt.Sprintf(goProgram, codecs.String()))
	cmd := exec.CommandContext(t.Context(), binary)
	cmd.Stdin = &stdin
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	answers := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(answers) != len(questions) {
		t.Fatalf("%d answers to %d questions", len(answers), len(questions))
	}
	valid := 0
	for i, q := range questions {
		if q.valid {
			valid++
		}
		switch failed := strings.HasPrefix(answers[i], "error:"); {
		case q.valid && failed:
			t.Errorf("%s\nof %s\nis refused: %s", q.value, q.contract.source, answers[i])
		case !q.valid && !failed:
			t.Errorf("%s\nof %s\nis accepted", q.value, q.contract.source)
		case q.valid && !sameJSON(t, q.value, answers[i]):
			t.Errorf("%s\nof %s\nbecomes %s", q.value, q.contract.source, answers[i])
		}
	}
	enough(t, valid, len(questions)-valid)
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal([]byte(a), &x); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(b), &y); err != nil {
		t.Fatal(err)
	}
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return bytes.Equal(p, q)
}

// buildGo builds a program with a generated package inside this module, where
// its imports are found without a network.
func buildGo(t *testing.T, generated []byte, program string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "agent.go"), generated)
	write(t, filepath.Join(dir, "main.go"), []byte(program))
	place, err := filepath.Abs(filepath.Join("testdata", "soundness"))
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(place, "fuzz", "agent.go"): filepath.Join(dir, "agent.go"),
		filepath.Join(place, "main.go"):          filepath.Join(dir, "main.go"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "overlay.json"), overlay)
	binary := filepath.Join(dir, "program")
	// The program runs for an instant; optimising it would take seconds.
	run(t, ".", "go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-gcflags=./testdata/soundness/...=-N -l",
		"-ldflags=-s -w", "-o", binary, "./testdata/soundness")
	return binary
}
