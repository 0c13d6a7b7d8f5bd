package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Survivors stand by file and place, whatever the order in which they were found,
// and every package has its row.
func TestReport(t *testing.T) {
	at := func(file string, start, line int, kind string) mutant {
		return mutant{kind: kind, file: "/src/" + file, start: start, line: line, before: "a < b", after: "a <= b"}
	}
	one := result{name: "one", mutants: 40, took: 1600 * time.Millisecond}
	one.add(at("b.go", 1, 1, "negated"), uncovered)
	one.add(at("a.go", 90, 9, "negated"), survived)
	one.add(at("a.go", 20, 2, "negated"), survived)
	one.add(at("a.go", 20, 2, "boundary"), survived)
	for range 12 {
		one.add(mutant{}, killed)
	}
	one.add(mutant{}, timedOut)
	one.add(mutant{}, invalid)
	two := result{name: "longer/two", mutants: 3}
	var out strings.Builder
	report(&out, []result{one, two})
	want := `one/a.go:2: boundary: a < b  →  a <= b
one/a.go:2: negated: a < b  →  a <= b
one/a.go:9: negated: a < b  →  a <= b
one/b.go:1: negated: a < b  →  a <= b  (no test enters it)

     package  mutants  run  killed  timed out  survived   rate  time
         one       40   17      12          1         4   76 %    2s
  longer/two        3    0       0          0         0  100 %    0s
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// A report shows the first line of what changed, cut to the width of a screen.
func TestChangeIsOneLine(t *testing.T) {
	wide := strings.Repeat("é", 72)
	for _, test := range []struct{ before, after, want string }{
		{"a", "b", "k: a  →  b"},
		{"a", "", "k: a"},
		{"f(\n\ta,\n)", "", "k: f( …"},
		{wide, "", "k: " + wide},
		{wide + "x", "y", "k: " + wide + " …  →  y"},
		{"a", "b\nc", "k: a  →  b …"},
	} {
		if got := (mutant{kind: "k", before: test.before, after: test.after}).change(); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

func TestPackageNames(t *testing.T) {
	for path, want := range map[string]string{"example.com/m": ".", "example.com/m/a": "a", "example.com/m/a/b": "a/b", "example.com/more": "example.com/more"} {
		p := pkg{ImportPath: path}
		p.Module.Path = "example.com/m"
		if got := p.name(); got != want {
			t.Errorf("%s is named %s, want %s", path, got, want)
		}
	}
}

func TestOptionsAreRead(t *testing.T) {
	o, err := parseOptions([]string{"-C", "dir", "-changed", "main", "-n", "0", "-seed", "7", "-min", "100", "-p", "1", "-slack", "2s", "-v", "./a", "./b"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if o.dir != "dir" || o.changed != "main" || o.sample != 0 || o.seed != 7 || o.minimum != 100 || o.parallel != 1 || o.slack != 2*time.Second || !o.verbose ||
		!slices.Equal(o.patterns, []string{"./a", "./b"}) {
		t.Errorf("%+v", o)
	}
	o, err = parseOptions([]string{"."}, io.Discard)
	if err != nil || o.sample != 40 || o.seed != 1 || o.minimum != 0 || o.parallel < 1 || o.dir != "." {
		t.Errorf("defaults %+v, %v", o, err)
	}
	var usage strings.Builder
	if _, err := parseOptions([]string{"-h"}, &usage); !errors.Is(err, flag.ErrHelp) || !strings.Contains(usage.String(), "usage: go run ./internal/mutation") {
		t.Errorf("%v, %s", err, usage.String())
	}
}

// What keeps the tool from measuring is an error that says so, never a rate.
func TestFailuresAreReported(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx  context.Context
		args []string
		want string
	}{
		"no such folder":   {t.Context(), []string{"-C", filepath.Join(t.TempDir(), "absent"), "."}, "absent"},
		"no such package":  {t.Context(), []string{"-C", "testdata/tiny", "./absent"}, "absent"},
		"no such revision": {t.Context(), []string{"-C", "testdata/tiny", "-changed", "no-such-revision", "./..."}, "no-such-revision"},
		"interrupted":      {ended, []string{"-C", "testdata/tiny", "./..."}, "context canceled"},
	} {
		var out strings.Builder
		err := run(test.ctx, test.args, &out, io.Discard)
		if err == nil || !strings.Contains(err.Error(), test.want) || errors.Is(err, errBelowMinimum) || out.Len() != 0 {
			t.Errorf("%s: %v, printed %q", name, err, out.String())
		}
	}
	var out strings.Builder
	if err := run(t.Context(), []string{"-C", "testdata/tiny", "./untested"}, &out, io.Discard); err != nil || out.String() != "no package to test\n" {
		t.Errorf("a package without tests: %v, %q", err, out.String())
	}
}

// Every mutant of this command itself is Go, keeps the lines where they are and
// stands where it says: the sources are a sample of what real code holds.
func TestMutantsOfRealCode(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found, err := mutantsIn(file, src)
		if err != nil {
			t.Fatal(err)
		}
		total += len(found)
		for _, m := range found {
			checkMutant(t, m, src)
		}
	}
	if total < 200 {
		t.Errorf("only %d mutants", total)
	}
}

func checkMutant(t *testing.T, m mutant, src []byte) {
	t.Helper()
	mutated := m.apply(src)
	if line := 1 + strings.Count(string(src[:m.start]), "\n"); line != m.line {
		t.Errorf("%s:%d: %s: it stands on line %d", m.file, m.line, m.change(), line)
	}
	if len(mutated) != len(src)-(m.end-m.start)+len(m.replacement) || string(mutated[:m.start]) != string(src[:m.start]) ||
		!strings.HasSuffix(string(mutated), string(src[m.end:])) {
		t.Errorf("%s:%d: %s changes more than its range", m.file, m.line, m.change())
	}
	if _, err := mutantsIn(m.file, mutated); err != nil {
		t.Errorf("%s:%d: %s is no Go: %v", m.file, m.line, m.change(), err)
	}
	if strings.ContainsAny(m.change(), "\n\r") {
		t.Errorf("%s:%d: %q is more than a line", m.file, m.line, m.change())
	}
}

func TestOperators(t *testing.T) {
	for op, want := range map[string][]string{
		"==": {"!="}, "!=": {"=="}, "<": {">=", "<="}, "<=": {">", "<"}, ">": {"<=", ">="}, ">=": {"<", ">"}, "+": nil, "&": nil,
	} {
		result := "bool"
		if want == nil {
			result = "int"
		}
		var got []string
		for _, change := range changesOf(t, "f(a, b int) "+result, "return a "+op+" b") {
			_, after, _ := strings.Cut(change, "  →  ")
			got = append(got, strings.Fields(after)[1])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s becomes %q, want %q", op, got, want)
		}
	}
}

func TestBrokenSourcesAreReported(t *testing.T) {
	if _, err := mutantsIn("p.go", []byte("package p\nfunc {")); err == nil || !strings.HasPrefix(err.Error(), "p.go:2:") {
		t.Errorf("%v", err)
	}
	if _, err := mutantsOf(pkg{Dir: t.TempDir(), GoFiles: []string{"absent.go"}}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	for _, profile := range []string{"m/a.go:3.10,5.2 1\n", "m/a.go:x\n", "m/a.go\n"} {
		if c, err := parseCoverage(profile); err == nil || !strings.Contains(err.Error(), "no line of a coverage profile") {
			t.Errorf("%q is read as %v, %v", profile, c, err)
		}
	}
	if c, err := parseCoverage("mode: set\n"); err != nil || len(c) != 0 {
		t.Errorf("an empty profile: %v, %v", c, err)
	}
}
