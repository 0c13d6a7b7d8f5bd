package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mutate runs the tool, and splits its report into survivors and table.
func mutate(t *testing.T, args ...string) (survivors []string, table string, err error) {
	t.Helper()
	var out strings.Builder
	err = run(t.Context(), args, &out, io.Discard)
	list, table, _ := strings.Cut(out.String(), "\n\n")
	return strings.Split(list, "\n"), table, err
}

func TestSurvivorsAreWhatNoTestNotices(t *testing.T) {
	t.Parallel()
	survivors, table, err := mutate(t, "-C", "testdata/tiny", "-n", "0", "-slack", "2s", "./...")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"counter/counter.go:23: skipped: c.n = 0",
		"counter/counter.go:23: constant: 0  →  1  in  c.n = 0",
		"counter/counter.go:28: boundary: n > 0  →  n >= 0",
		"counter/counter.go:28: negated: n > 0  →  n <= 0",
		"counter/counter.go:28: constant: 0  →  1  in  n > 0",
		"counter/counter.go:34: negated: a  →  !a  (no test enters it)",
		"counter/counter.go:34: logic: a && b  →  a || b  (no test enters it)",
		"counter/counter.go:34: negated: b  →  !b  (no test enters it)",
	}
	if !slices.Equal(survivors, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(survivors, "\n"), strings.Join(want, "\n"))
	}
	// The loop that never ends is stopped, and counts as noticed.
	if fields := strings.Fields(strings.Split(table, "\n")[1]); !slices.Equal(fields[:7], []string{"counter", "14", "14", "5", "1", "8", "43"}) {
		t.Errorf("table:\n%s", table)
	}
	if strings.Contains(table, "untested") {
		t.Errorf("a package without tests is in the table:\n%s", table)
	}
}

func TestMinimum(t *testing.T) {
	t.Parallel()
	if _, _, err := mutate(t, "-C", "testdata/tiny", "-n", "3", "-min", "99", "./counter"); !errors.Is(err, errBelowMinimum) {
		t.Errorf("got %v, want that the rate is too low", err)
	}
}

// With -changed, only packages whose code or tests differ from the revision are run.
func TestChanged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/tiny")); err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q", "-b", "main")
	git("add", "-A")
	git("commit", "-q", "-m", "all")
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	changed := func() []string {
		t.Helper()
		packages, err := selectPackages(t.Context(), options{dir: dir, patterns: []string{"./..."}, changed: "main"})
		if err != nil {
			t.Fatal(err)
		}
		names := []string{}
		for _, p := range packages {
			names = append(names, p.name())
		}
		return names
	}
	write("counter/notes.txt", "not Go")
	if got := changed(); len(got) != 0 {
		t.Errorf("nothing changed, and %v is run", got)
	}
	write("counter/more_test.go", "package counter\n")
	if got := changed(); !slices.Equal(got, []string{"counter"}) {
		t.Errorf("a new test file: %v", got)
	}
	git("checkout", "-q", "-b", "work")
	git("add", "-A")
	git("commit", "-q", "-m", "more")
	if got := changed(); !slices.Equal(got, []string{"counter"}) {
		t.Errorf("a commit on a branch: %v", got)
	}
}

func TestBrokenTestsAreReported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/tiny")); err != nil {
		t.Fatal(err)
	}
	broken := "package counter\n\nimport \"testing\"\n\nfunc TestBroken(t *testing.T) { t.Error(\"broken before\") }\n"
	if err := os.WriteFile(filepath.Join(dir, "counter", "broken_test.go"), []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := mutate(t, "-C", dir, "-n", "1", "./counter")
	if err == nil || !strings.Contains(err.Error(), "broken before") {
		t.Errorf("got %v, want the failing test's output", err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, args := range [][]string{{}, {"-n", "-1", "."}, {"-p", "0", "."}, {"-min", "101", "."}, {"-nonsense", "."}} {
		if _, err := parseOptions(args, io.Discard); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}

func TestCoverage(t *testing.T) {
	c, err := parseCoverage("mode: set\nm/a.go:3.10,5.2 1 0\nm/a.go:7.10,7.20 1 1\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		file         string
		line, column int
		want         bool
	}{
		{"m/a.go", 3, 10, true}, {"m/a.go", 3, 9, false}, {"m/a.go", 4, 1, true}, {"m/a.go", 5, 1, true}, {"m/a.go", 5, 2, false},
		{"m/a.go", 7, 15, false}, {"m/b.go", 4, 1, false},
	} {
		if got := c.misses(test.file, test.line, test.column); got != test.want {
			t.Errorf("%s:%d:%d: missed %v", test.file, test.line, test.column, got)
		}
	}
	if _, err := parseCoverage("nonsense\n"); err == nil {
		t.Error("nonsense is a profile")
	}
}

func TestRate(t *testing.T) {
	r := result{}
	if r.rate() != 100 {
		t.Error("a package without mutants has something to notice")
	}
	for _, v := range []verdict{killed, timedOut, invalid, survived} {
		r.add(mutant{}, v)
	}
	if got := r.rate(); got < 66 || got > 67 {
		t.Errorf("two of three are %.1f %%: what does not compile does not count", got)
	}
}
