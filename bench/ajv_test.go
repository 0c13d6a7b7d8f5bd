package bench_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/schema"
)

// nodeModulesEnv names a node_modules with ajv and ajv-formats.
const nodeModulesEnv = "AGENTD_NODE_MODULES"

// ajv is a process that judges by ajv, one question after the other.
type ajv struct {
	ask    io.WriteCloser
	answer *bufio.Reader
}

// startAjv starts the process, or skips the test where it cannot be had. It ends with
// the test.
func startAjv(t *testing.T) *ajv {
	t.Helper()
	modules := os.Getenv(nodeModulesEnv)
	if _, err := os.Stat(filepath.Join(modules, "ajv-formats")); modules == "" || err != nil {
		t.Skipf("SKIPPED: not compared with ajv; run `npm install ajv@8.20.0 ajv-formats@3.0.1` in a folder and set %s to its node_modules", nodeModulesEnv)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("SKIPPED: not compared with ajv: there is no Node.js")
	}
	cmd := exec.Command(node, filepath.Join("ajv", "oracle.mjs"))
	cmd.Stderr = os.Stderr
	in, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("node: %v", err)
		}
	})
	return &ajv{in, bufio.NewReader(out)}
}

// judge returns the verdicts on payloads, or why ajv refuses the schema. What ajv is
// known to get wrong is rewritten before.
func (a *ajv) judge(t *testing.T, v vocabulary, source string, payloads []json.RawMessage) (valid []bool, refusal string) {
	t.Helper()
	return a.judgeAs(t, v, source, payloads, true)
}

// judgeAs is judge with the rewriting, or without.
func (a *ajv) judgeAs(t *testing.T, v vocabulary, source string, payloads []json.RawMessage, rewriting bool) (valid []bool, refusal string) {
	t.Helper()
	question, err := json.Marshal(map[string]any{
		"dialect": v.dialect, "formats": v.formats != nil, "rewriting": rewriting, "schema": json.RawMessage(source), "payloads": payloads,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.ask.Write(append(question, '\n')); err != nil {
		t.Fatal(err)
	}
	line, err := a.answer.ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Valid []bool
		Error string
	}
	if err := json.Unmarshal(line, &answer); err != nil {
		t.Fatal(err)
	}
	if answer.Error == "" && len(answer.Valid) != len(payloads) {
		t.Fatalf("%d verdicts on %d payloads", len(answer.Valid), len(payloads))
	}
	return answer.Valid, answer.Error
}

// differs reports whether ajv and the engine disagree about a payload.
func (a *ajv) differs(t *testing.T, v vocabulary, source string, payload json.RawMessage) bool {
	t.Helper()
	mine, err := v.compile(source)
	if err != nil {
		return false
	}
	theirs, refusal := a.judge(t, v, source, []json.RawMessage{payload})
	return refusal == "" && theirs[0] != mine.Valid(payload)
}

// TestDifferentialAjv draws schemas over each vocabulary and payloads, and holds the
// verdicts to those of ajv.
func TestDifferentialAjv(t *testing.T) {
	other := startAjv(t)
	// What ajv gets wrong is left out, or rewritten by the oracle: testdata/ajv-faults.json.
	contains := []string{"$dynamicRef", "contains", "minContains", "maxContains"}
	unevaluated := []string{"$dynamicRef", "unevaluatedItems"}
	for _, v := range vocabularies() {
		v.formats = slices.DeleteFunc(v.formats, func(name string) bool { return name == "uri-reference" })
		t.Run(v.name, func(t *testing.T) {
			end := time.Now().Add(*differentialFor / time.Duration(len(vocabularies())))
			schemas, payloads, valid, refused, faults := 0, 0, 0, 0, 0
			for seed := uint64(1); seed <= 300 || time.Now().Before(end); seed++ {
				v.without = contains
				if seed%2 == 0 {
					v.without = unevaluated
				}
				p, ok := v.problem(t, seed)
				if !ok {
					continue
				}
				theirs, refusal := other.judge(t, v, p.source, p.payloads)
				if refusal != "" {
					refused++
					continue
				}
				schemas++
				for i, payload := range p.payloads {
					payloads++
					if p.verdicts[i] {
						valid++
					}
					if p.verdicts[i] != theirs[i] && !other.atFault(t, v, p.source, payload) {
						t.Errorf("seed %d", seed)
					} else if p.verdicts[i] != theirs[i] {
						faults++
					}
				}
			}
			t.Logf("%d schemas, %d payloads, %d of them valid; ajv cannot compile %d schemas, and %d of its verdicts are wrong as listed",
				schemas, payloads, valid, refused, faults)
		})
	}
}

// atFault reports whether a disagreement is of the kind that is listed as a fault of
// ajv: about what is left unevaluated or about an email, where the other Go library sides
// with the engine. Any other it reports as an error, without the parts that have nothing
// to do with it.
func (a *ajv) atFault(t *testing.T, v vocabulary, source string, payload json.RawMessage) bool {
	t.Helper()
	source = shrink(source, func(text string) bool { return a.differs(t, v, text, payload) })
	payload = json.RawMessage(shrink(string(payload), func(text string) bool { return a.differs(t, v, source, json.RawMessage(text)) }))
	mine, err := v.compile(source)
	if err != nil {
		t.Fatal(err)
	}
	_, draft := dialectOf(v.dialect)
	third, err := oracle([]byte(source), draft, v.formats != nil)
	if err != nil {
		t.Fatal(err)
	}
	got := mine.Valid(payload)
	listed := strings.Contains(source, `"unevaluated`) || strings.Contains(source, `"email"`)
	if listed && accepts(third, payload) == got {
		return true
	}
	t.Errorf("%s is valid=%v, %v to ajv and %v to the other library, by %s", payload, got, !got, accepts(third, payload), source)
	return false
}

// TestAjvFaults holds the list of what ajv gets wrong: its verdicts are still those, the
// engine's are the right ones, and the other Go library agrees.
func TestAjvFaults(t *testing.T) {
	src, err := os.ReadFile("testdata/ajv-faults.json")
	if err != nil {
		t.Fatal(err)
	}
	var faults []struct {
		Fault, Dialect  string
		Formats         bool
		Schema, Payload json.RawMessage
		Valid           bool
		Reason          string
		OthersToo       bool // the other Go library makes the same mistake
	}
	if err := json.Unmarshal(src, &faults); err != nil {
		t.Fatal(err)
	}
	other := startAjv(t)
	for _, f := range faults {
		v := vocabulary{profile: schema.ProfileFull, dialect: f.Dialect}
		if f.Formats {
			v.formats = []string{"any"}
		}
		mine, err := v.compile(string(f.Schema))
		if err != nil {
			t.Fatal(err)
		}
		if got := mine.Valid(f.Payload); got != f.Valid {
			t.Errorf("%s: %s is valid=%v by %s", f.Fault, f.Payload, got, f.Schema)
		}
		_, draft := dialectOf(f.Dialect)
		third, err := oracle(f.Schema, draft, f.Formats)
		if err != nil {
			t.Fatal(err)
		}
		if (accepts(third, f.Payload) == f.Valid) == f.OthersToo {
			t.Errorf("%s: the other library has %v", f.Fault, accepts(third, f.Payload))
		}
		theirs, refusal := other.judgeAs(t, v, string(f.Schema), []json.RawMessage{f.Payload}, false)
		if refusal != "" || theirs[0] == f.Valid {
			t.Errorf("%s: no fault any more: %v %s", f.Fault, theirs, refusal)
		}
	}
}
