package reference_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/npmtest"
	"github.com/agentd/agentd/internal/reference"
	"github.com/agentd/agentd/internal/strictyaml"
	"github.com/agentd/agentd/schema"
)

// A fixture is a file that stands somewhere in this repository, by itself, in a script of tests,
// or in the text of a test.
type fixture struct {
	file, from string
	text       string
	json       []byte
	accepted   bool  // by the decoder
	structure  error // a fault of the decoder that a schema can see
}

// fixtures are those whose text is well formed.
func fixtures(t *testing.T) []fixture {
	t.Helper()
	all, err := readFixtures()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var readFixtures = sync.OnceValues(func() (all []fixture, err error) {
	known := daemon.LoadOptions().Actions
	add := func(name, from, text string) {
		for _, file := range reference.Files() {
			if filepath.Base(name) != file {
				continue
			}
			f := fixture{file: file, from: from, text: text}
			var tree any
			if yaml.Unmarshal([]byte(text), &tree) != nil {
				continue
			}
			var err error
			if f.json, err = json.Marshal(tree); err != nil {
				continue // keys that are no strings
			}
			err = fleet.Trace(file, []byte(text), &strictyaml.Key{}, known)
			f.accepted, f.structure = err == nil, structural(err)
			all = append(all, f)
		}
	}
	err = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		ext := filepath.Ext(path)
		if ext != ".yaml" && ext != ".txtar" && !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if ext == ".yaml" {
			add(path, path, string(text))
			return err
		}
		for _, part := range strings.Split(string(text), "\n-- ")[1:] {
			if name, body, ok := strings.Cut(part, " --\n"); ok {
				body, _, _ = strings.Cut(body, "`")
				add(name, path, body)
			}
		}
		return err
	})
	return all, err
})

// structural is the first fault of an error that a schema of the one file can see.
func structural(err error) error {
	var load *fleet.LoadError
	if !errors.As(err, &load) {
		return nil
	}
	for _, f := range load.Faults {
		for _, start := range []string{"expected a ", "expected one of ", "expected a whole number", "the string must not be empty", "the key ", "unknown key ", "expected at least one "} {
			// What a key means may depend on others.
			if strings.HasPrefix(f.Message, start) && !strings.HasPrefix(f.Message, "the key \"command\" is missing") && !strings.Contains(f.Message, "promises a protection") &&
				!strings.HasPrefix(f.Message, "expected a duration") && !strings.HasPrefix(f.Message, "expected a public nkey") {
				return errors.New(f.String())
			}
		}
	}
	return nil
}

// The schemas for editors accept every file of this repository that its decoder accepts, and refuse
// what it refuses for its shape.
func TestSchemas(t *testing.T) {
	schemas := compiled(t)
	accepted, refused := 0, 0
	for _, f := range fixtures(t) {
		violations := schemas[f.file].Validate(f.json)
		switch {
		case f.accepted && len(violations) > 0:
			t.Errorf("%s of %s is refused: %v\n%s", f.file, f.from, violations, f.text)
		case f.structure != nil && len(violations) == 0:
			t.Errorf("%s of %s is accepted, and the decoder says: %v\n%s", f.file, f.from, f.structure, f.text)
		case f.accepted:
			accepted++
		case f.structure != nil:
			refused++
		}
	}
	if accepted < 100 || refused < 3 {
		t.Errorf("only %d files were accepted and %d refused", accepted, refused)
	}
}

func compiled(t *testing.T) map[string]*schema.Schema {
	t.Helper()
	out, err := compile()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var compile = sync.OnceValues(func() (map[string]*schema.Schema, error) {
	files, err := reference.ReadFiles()
	if err != nil {
		return nil, err
	}
	out := map[string]*schema.Schema{}
	for _, f := range files {
		src, err := f.Schema()
		if err != nil {
			return nil, err
		}
		if out[f.Name], err = schema.CompileWith(src, schema.CompileOptions{Profile: schema.ProfileFull}); err != nil {
			return nil, fmt.Errorf("the schema of %s: %w", f.Name, err)
		}
		if remarks := out[f.Name].Remarks(); len(remarks) > 0 {
			return nil, fmt.Errorf("the schema of %s: %+v", f.Name, remarks)
		}
	}
	return out, nil
})

// Each kind of mistake that the decoders find in the shape of a file, the schemas find as well.
func TestMistakes(t *testing.T) {
	schemas := compiled(t)
	for _, row := range []struct{ file, text string }{
		{"fleet.yaml", "version: 1\nname: a"},
		{"fleet.yaml", "version: 1\nname: a\nagents: [{id: a}]"},
		{"fleet.yaml", "version: 1\nname: a\nagents: []\nbroker: {names: mine}"},
		{"agent.yaml", "name: a\nskils: {}"},
		{"agent.yaml", "name: [a]"},
		{"agent.yaml", "name: a\nlimits: {maxInFlight: 0}"},
		{"agent.yaml", "name: a\nlimits: {maxInFlight: many}"},
		{"agent.yaml", "name: a\nskills: {x: {process: {}}}"},
		{"agent.yaml", "name: a\nskills: {x: {process: {command: []}}}"},
		{"agent.yaml", "name: a\nskills: {x: {process: {command: [a], sandbox: {}}}}"},
		{"agent.yaml", "name: a\nskills: {x: {process: {command: [a]}, sandbox: on}}"},
		{"agent.yaml", "name: a\ncapabilities: {memory: {unknown: 1}}"},
		{"agent.yaml", "name: a\nquotas: {a: 1}"},
		{"capabilities.yaml", "version: 1\nagent: agent://a\ntransports: []\ncapabilities: [{name: a}]"},
		{"capabilities.yaml", "version: 1\nagent: agent://a\ntransports: [{kind: pigeon}]\ncapabilities: [{name: a}]"},
		{"capabilities.yaml", "version: 1\nagent: agent://a\ntransports: [{kind: memory, topics: {requests: r}}]\ncapabilities: [{name: a, timeoutMs: 1.5}]"},
		{"rpc-peers.yaml", "version: 1"},
		{"identities.yaml", "version: 1\nidentities: [{agent: agent://a}]"},
		{"identities.yaml", "version: 1\nidentities: [{agent: agent://a, auth: {provider: nkey, keys: []}}]"},
		{"rpc-peers.yaml", "version: 1\npeers: [{agent: agent://a, transports: [{kind: nats, subjects: {}}]}]"},
	} {
		if err := fleet.Trace(row.file, []byte(row.text), &strictyaml.Key{}, nil); err == nil {
			t.Errorf("the decoder accepts\n%s", row.text)
		}
		var tree any
		if err := yaml.Unmarshal([]byte(row.text), &tree); err != nil {
			t.Fatal(err)
		}
		src, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		if schemas[row.file].Valid(src) {
			t.Errorf("the schema accepts\n%s", row.text)
		}
	}
}

// Ajv, which many editors use, comes to the verdicts of package schema.
func TestSchemasInAjv(t *testing.T) {
	cmd := npmtest.Program(t, "ajv/dist/ajv.js") // which says where it is; the program is our own
	schemas := compiled(t)
	type value struct {
		File  string          `json:"file"`
		Value json.RawMessage `json:"value"`
		valid bool
	}
	var in struct {
		Schemas map[string]json.RawMessage `json:"schemas"`
		Values  []value                    `json:"values"`
	}
	in.Schemas = map[string]json.RawMessage{}
	for _, f := range fixtures(t) {
		in.Values = append(in.Values, value{f.file, f.json, schemas[f.file].Valid(f.json)})
	}
	for name, s := range schemas {
		in.Schemas[name] = s.Source()
	}
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	const program = `
const Ajv = require(process.argv[1]).default
const {schemas, values} = JSON.parse(require("fs").readFileSync(0))
const ajv = new Ajv({strict: true, allowUnionTypes: true, validateFormats: false})
const check = Object.fromEntries(Object.entries(schemas).map(([name, s]) => [name, ajv.compile(s)]))
console.log(JSON.stringify(values.map(v => check[v.file](v.value))))`
	cmd.Args = []string{cmd.Args[0], "-e", program, cmd.Args[1]}
	cmd.Stdin = strings.NewReader(string(data))
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("%v: %s", err, exit.Stderr)
		}
		t.Fatal(err)
	}
	var verdicts []bool
	if err := json.Unmarshal(out, &verdicts); err != nil || len(verdicts) != len(in.Values) {
		t.Fatalf("%v: %.300s", err, out)
	}
	for i, v := range in.Values {
		if verdicts[i] != v.valid {
			t.Errorf("%s: ajv says %v, and package schema %v: %s", v.File, verdicts[i], v.valid, v.Value)
		}
	}
}
