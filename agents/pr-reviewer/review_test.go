package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/agents/librarian/search"
	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/schema"
)

// change is a diff that adds lines to a file.
func change(path string, added ...string) string {
	return fmt.Sprintf("--- a/%s\n+++ b/%s\n@@ -0,0 +1,%d @@\n+%s\n", path, path, len(added), strings.Join(added, "\n+"))
}

// judged reviews a diff and shows its findings as "file:line severity rule".
func judged(t *testing.T, diff, threshold string) (report, []string) {
	t.Helper()
	files, err := parseDiff(diff)
	if err != nil {
		t.Fatal(err)
	}
	r := review(files, threshold)
	var findings []string
	for _, f := range r.Findings {
		findings = append(findings, fmt.Sprintf("%s:%d %s %s", f.File, f.Line, f.Severity, f.Rule))
	}
	return r, findings
}

// The patches are the data of the demo and of the README.
func TestSamplePatches(t *testing.T) {
	for name, want := range map[string][]string{
		"limit-uploads.patch": {"approve"},
		"invoice-export.patch": {
			"request-changes",
			"web/src/invoices/export.ts:9 high leaked-key",
			"web/src/invoices/export.ts:22 med debug-print",
			"web/src/invoices/export.ts:5 low todo-no-owner",
		},
		"country-table.patch": {
			"request-changes",
			"internal/tax/rates.go:80 high conflict-marker",
			"internal/tax/rates_test.go:11 med removed-test",
			"internal/tax/rates.go:1 low huge-hunk",
		},
	} {
		diff, err := os.ReadFile("patches/" + name)
		if err != nil {
			t.Fatal(err)
		}
		report, findings := judged(t, string(diff), "low")
		if got := append([]string{report.Verdict}, findings...); !slices.Equal(got, want) {
			t.Errorf("%s: got\n%q\nwant\n%q", name, got, want)
		}
	}
}

func TestRules(t *testing.T) {
	key := "AKIA" + "FAKEFAKEFAKE2345" // in two parts, so that scanners pass over it
	for _, tt := range []struct{ path, line, rule string }{
		{"a.go", `key := "` + key + `"`, "leaked-key"},
		{"docs/a.md", "use " + key, "leaked-key"}, // prose and tests leak too
		{"a_test.go", `"ghp_` + strings.Repeat("a", 36) + `"`, "leaked-key"},
		{"a.yaml", "token: xoxb-" + strings.Repeat("1", 20), "leaked-key"},
		{"a.env", "sk_live_" + strings.Repeat("a", 20), "leaked-key"},
		{"id", "-----BEGIN RSA PRIVATE KEY-----", "leaked-key"},
		{"id", "-----BEGIN PRIVATE KEY-----", "leaked-key"},
		{"id.pub", "-----BEGIN PUBLIC KEY-----", ""},
		{"a.go", "AKIASHORT", ""},
		{"a.go", "X" + key, ""},
		{"a.md", "<<<<<<< HEAD", "conflict-marker"},
		{"a.md", " <<<<<<< HEAD", ""},
		{"a.md", "=======", ""},
		{"a.js", "  debugger;", "debugger-left"},
		{"a.js", "// debugger;", ""},
		{"a.py", "    import pdb; pdb.set_trace()", "debugger-left"},
		{"a.py", "breakpoint()", "debugger-left"},
		{"a.rb", "binding.pry", "debugger-left"},
		{"a.md", "debugger;", ""},
		{"a.go", "cfg.InsecureSkipVerify = true", "tls-verify-off"},
		{"a.go", "InsecureSkipVerify: insecure", ""},
		{"a_test.go", "InsecureSkipVerify: true,", ""},
		{"a.ts", "rejectUnauthorized: false", "tls-verify-off"},
		{"a.py", "requests.get(url, verify=False)", "tls-verify-off"},
		{"a.py", "# verify=False", ""},
		{"src/a.ts", "console.log(x)", "debug-print"},
		{"src/a.ts", "console.error(x)", ""},
		{"src/a.spec.ts", "console.log(x)", ""},
		{"src/a.ts", " * console.log(x)", ""},
		{"a.go", "\tfmt.Println(x)", "debug-print"},
		{"a.go", "\tfmt.Printf(x)", "debug-print"},
		{"a.go", "\tfmt.Fprintln(w, x)", ""},
		{"cmd/a/b.go", "\tfmt.Println(x)", ""},
		{"main.go", "\tfmt.Println(x)", ""},
		{"domain.go", "\tfmt.Println(x)", "debug-print"},
		{"a.py", "  print(x)", "debug-print"},
		{"test_a.py", "print(x)", ""},
		{"vendor/a.py", "print(x)", ""},
		{"a.go", "// TODO: later", "todo-no-owner"},
		{"a.go", "// FIXME", "todo-no-owner"},
		{"a_test.go", "// TODO: later", "todo-no-owner"},
		{"a.go", "// TODO(dana): later", ""},
		{"a.go", "// TODO: see #12", ""},
		{"a.go", "// TODO see https://example.com/1", ""},
		{"a.go", "const TODOS = 1", ""},
		{"a.md", "TODO: later", ""},
	} {
		_, findings := judged(t, change(tt.path, "x", tt.line), "low")
		var want []string
		for _, r := range rules {
			if r.id == tt.rule {
				want = []string{fmt.Sprintf("%s:2 %s %s", tt.path, r.severity, r.id)}
			}
		}
		if !slices.Equal(findings, want) {
			t.Errorf("%s %q: got %q, want %q", tt.path, tt.line, findings, want)
		}
		// Only what the change adds is judged.
		if _, findings := judged(t, "--- a/x.go\n+++ b/x.go\n@@ -1 +1,0 @@\n-"+tt.line+"\n", "low"); len(findings) > 0 {
			t.Errorf("removing %q: %q", tt.line, findings)
		}
	}
}

func TestVerdict(t *testing.T) {
	const low, med, high = "// TODO: later", "console.log(x)", "debugger"
	for _, tt := range []struct {
		lines     []string
		threshold string
		want      string
		summary   string
	}{
		{nil, "low", "approve", "No findings of severity low or above in 1 files."},
		{[]string{low}, "low", "approve todo-no-owner", "Findings: 0 high, 0 med, 1 low, in 1 files. Start with todo-no-owner at a.ts:1."},
		{[]string{low, med}, "low", "comment debug-print todo-no-owner", "Findings: 0 high, 1 med, 1 low, in 1 files. Start with debug-print at a.ts:2."},
		{[]string{low, med, high}, "low", "request-changes debugger-left debug-print todo-no-owner", "Findings: 1 high, 1 med, 1 low, in 1 files. Start with debugger-left at a.ts:3."},
		{[]string{low}, "med", "approve", "No findings of severity med or above in 1 files."},
		{[]string{low, med, high}, "med", "request-changes debugger-left debug-print", "Findings: 1 high, 1 med, 0 low, in 1 files. Start with debugger-left at a.ts:3."},
		{[]string{low, med}, "high", "approve", "No findings of severity high or above in 1 files."},
		{[]string{med, med}, "low", "comment debug-print debug-print", "Findings: 0 high, 2 med, 0 low, in 1 files. Start with debug-print at a.ts:1."},
	} {
		report, _ := judged(t, change("a.ts", tt.lines...), tt.threshold)
		got := report.Verdict
		for _, f := range report.Findings {
			got += " " + f.Rule
		}
		if got != tt.want || report.Summary != tt.summary {
			t.Errorf("%q at %s: got  %s, %s\nwant %s, %s", tt.lines, tt.threshold, got, report.Summary, tt.want, tt.summary)
		}
	}
}

func TestRemovedTests(t *testing.T) {
	const gone = "--- a/a_test.go\n+++ b/a_test.go\n@@ -3,3 +3 @@\n }\n-func TestA(t *testing.T) {\n-func TestB(t *testing.T) {\n"
	for _, tt := range []struct{ name, diff, want string }{
		{"removed", gone, "a_test.go:3"},
		{"one comes back elsewhere", gone + change("b_test.go", "func TestA(t *testing.T) {"), "a_test.go:3"},
		{"moved and renamed", gone + change("b_test.go", "func TestA(t *testing.T) {", "func TestC(t *testing.T) {"), ""},
		{"with its file", "--- a/test_a.py\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-def test_a():\n-  pass\n", "test_a.py:0"},
		{"nothing left beside it", "--- a/a.test.ts\n+++ b/a.test.ts\n@@ -5 +4,0 @@\n-  it('adds', () => {\n", "a.test.ts:4"},
		{"at the top", "--- a/a.test.ts\n+++ b/a.test.ts\n@@ -1,2 +1 @@\n-test(`adds`, () => {\n x\n", "a.test.ts:0"},
		{"kept", "--- a/a_test.go\n+++ b/a_test.go\n@@ -1,2 +1 @@\n func TestA(t *testing.T) {\n-\n", ""},
		{"a call", "--- a/a.go\n+++ b/a.go\n@@ -1 +0,0 @@\n-submit('form')\n", ""},
	} {
		_, findings := judged(t, tt.diff, "low")
		var want []string
		if tt.want != "" {
			want = []string{tt.want + " med removed-test"}
		}
		if !slices.Equal(findings, want) {
			t.Errorf("%s: got %q, want %q", tt.name, findings, want)
		}
	}
	report, _ := judged(t, gone+change("b_test.go", "func TestA(t *testing.T) {"), "low")
	if got := report.Findings[0].Message; !strings.HasPrefix(got, "The change removes 2 tests and adds 1;") {
		t.Errorf("got %q", got)
	}
}

func TestHugeHunk(t *testing.T) {
	for _, tt := range []struct {
		path  string
		lines int
		want  []string
	}{
		{"a.go", hugeHunkLines - 1, nil},
		{"a.go", hugeHunkLines, []string{"a.go:1 low huge-hunk"}},
		{"a.go", 3 * hugeHunkLines, []string{"a.go:1 low huge-hunk"}},
		{"go.sum", hugeHunkLines, nil},
	} {
		if _, got := judged(t, change(tt.path, slices.Repeat([]string{"x"}, tt.lines)...), "low"); !slices.Equal(got, tt.want) {
			t.Errorf("%s, %d lines: got %q, want %q", tt.path, tt.lines, got, tt.want)
		}
	}
	half := strings.Repeat("+x\n", hugeHunkLines-1)
	spread := fmt.Sprintf("--- a/a.go\n+++ b/a.go\n@@ -1 +1,%d @@\n x\n%s@@ -900 +900,%d @@\n x\n%s", hugeHunkLines, half, hugeHunkLines, half)
	if _, got := judged(t, spread, "low"); len(got) > 0 {
		t.Errorf("two hunks that are not huge: %q", got)
	}
}

func TestParseDiff(t *testing.T) {
	const mail = "From 1f0c3ab\nSubject: Move things\n\n---\n a.go | 3 ++-\n\n"
	for _, tt := range []struct {
		name, diff string
		want       []file
	}{
		{"empty", "", nil},
		{"blank", "\r\n\n", nil},
		{"renamed only", "diff --git a/a b/b\nsimilarity index 100%\nrename from a\nrename to b\n", nil},
		{"git", mail + "diff --git a/a.go b/a.go\nindex 1..2 100644\n--- a/a.go\n+++ b/a.go\n@@ -3,2 +3,3 @@ func f() {\n keep\n-old\n+new\n+newer\n@@ -20 +21 @@\n-x\n\\ No newline at end of file\n+y\n\\ No newline at end of file\n-- \n2.43.0\n",
			[]file{{"a.go", []line{{' ', 3, 3, "keep"}, {'-', 4, 3, "old"}, {'+', 4, 3, "new"}, {'+', 5, 3, "newer"}, {'-', 21, 21, "x"}, {'+', 21, 21, "y"}}}}},
		{"added", "--- /dev/null\n+++ b/b/made.c\n@@ -0,0 +1,2 @@\n+--- x\n++++ y\n", []file{{"b/made.c", []line{{'+', 1, 1, "--- x"}, {'+', 2, 1, "+++ y"}}}}},
		{"deleted", "--- a/a/gone.c\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n", []file{{"a/gone.c", []line{{'-', 1, 0, "x"}}}}},
		{"neither side", "--- /dev/null\n+++ /dev/null\n", []file{{path: "/dev/null"}}},
		{"diff -u", "--- a.c\t2024-01-01 00:00:00\r\n+++ a.c\t2024-01-02 00:00:00\r\n@@ -1 +1 @@\r\n-a\r\n+b\r\n", []file{{"a.c", []line{{'-', 1, 1, "a"}, {'+', 1, 1, "b"}}}}},
		{"a cut space", "--- a/a\n+++ b/a\n@@ -1,2 +1,3 @@\n x\n\n+y\n", []file{{"a", []line{{' ', 1, 1, "x"}, {' ', 2, 1, ""}, {'+', 3, 1, "y"}}}}},
		{"two files", change("a", "x") + change("b", "y"), []file{{"a", []line{{'+', 1, 1, "x"}}}, {"b", []line{{'+', 1, 1, "y"}}}}},
	} {
		if got, err := parseDiff(tt.diff); err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got\n%v, %v\nwant\n%v", tt.name, got, err, tt.want)
		}
	}
}

func TestParseDiffErrors(t *testing.T) {
	const head = "--- a/x\n+++ b/x\n"
	for diff, want := range map[string]string{
		"<!DOCTYPE html>\n<html>":                              "it is not a unified diff",
		"@@ -1 +1 @@\n-a\n+b\n":                                "line 1: a hunk header that is malformed, or belongs to no file",
		head + "@@ -1 +x @@\n":                                 "line 3: a hunk header",
		head + "@@ -1,-1 +1 @@\n":                              "line 3: a hunk header",
		head + "@@ -1 +9999999999 @@\n":                        "line 3: a hunk header",
		head + "@@@ -1 -1 +1 @@@\n":                            "line 3: a hunk header",
		head + "@@ -1,3 +1,3 @@\n a\n":                         "it ends inside a hunk",
		head + "@@ -1,0 +1,2 @@\n+a\n":                         "it ends inside a hunk",
		head + "@@ -1,2 +1,2 @@\n a\ndiff --git a/y b/y\n b\n": "line 5: the hunk does not hold the lines",
		head + "@@ -1,2 +1,1 @@\n+a\n+b\n":                     "line 5: the hunk does not hold the lines",
		head + "@@ -1,1 +1,2 @@\n-a\n-b\n":                     "line 5: the hunk does not hold the lines",
	} {
		if _, err := parseDiff(diff); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", diff, err, want)
		}
	}
}

// output is the contract that every report must meet.
func output(t testing.TB) *capability.Contract {
	t.Helper()
	doc, err := capability.Load("capabilities.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return doc.Capabilities[0].Output
}

// Whatever a change adds, the report meets the output schema, lists the worst
// findings first, and quotes no line.
func TestReports(t *testing.T) {
	contract := output(t)
	lines := rapid.SampledFrom([]string{"canary7", "debugger // canary7", "console.log(canary7)", "// TODO canary7", "<<<<<<< canary7", "func TestCanary7("})
	rapid.Check(t, func(t *rapid.T) {
		var diff string
		for i := range rapid.IntRange(0, 4).Draw(t, "files") {
			diff += change(fmt.Sprintf("%d.ts", i), rapid.SliceOfN(lines, 1, 120).Draw(t, "lines")...)
		}
		files, err := parseDiff(diff)
		if err != nil {
			t.Fatal(err)
		}
		got := review(files, rapid.SampledFrom([]string{"low", "med", "high"}).Draw(t, "threshold"))
		text, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		if r := contract.Check(text); r.Verdict != schema.Valid || strings.Contains(strings.ToLower(string(text)), "canary7") {
			t.Fatalf("%s: %+v", text, r.Violations)
		}
		var severities string
		for _, f := range got.Findings {
			severities += f.Severity[:1]
		}
		if strings.Contains(severities, "lm") || strings.Contains(severities, "lh") || strings.Contains(severities, "mh") {
			t.Fatalf("severities in the order %s", severities)
		}
	})
}

func FuzzParseDiff(f *testing.F) {
	contract := output(f)
	f.Add(change("a.go", "x", "<<<<<<< y"))
	f.Add("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n\\ No newline")
	f.Add("--- /dev/null\n+++ /dev/null\n@@ -0,0 +1 @@\n+debugger")
	f.Fuzz(func(t *testing.T, diff string) {
		files, err := parseDiff(diff)
		if err != nil {
			return
		}
		text, err := json.Marshal(review(files, "low"))
		if err != nil {
			t.Fatal(err)
		}
		if r := contract.Check(text); r.Verdict != schema.Valid {
			t.Fatalf("%s: %+v", text, r)
		}
	})
}

// The concierge looks up a note for every rule that the reviewer can report.
func TestEveryRuleHasANote(t *testing.T) {
	const dir = "../librarian/notes"
	index, err := search.Load(os.DirFS(dir), dir)
	if err != nil {
		t.Fatal(err)
	}
	ids := []string{"removed-test", "huge-hunk"}
	for _, r := range rules {
		ids = append(ids, r.id)
	}
	for _, id := range ids {
		if got := index.Search(id, 1); len(got) != 1 || !strings.Contains(got[0].Title, "("+id+")") {
			t.Errorf("%s leads to %+v, want the section that names it", id, got)
		}
	}
}
