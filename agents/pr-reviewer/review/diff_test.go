package review

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const gitDiff = `From 1f0c3ab Mon Sep 17 00:00:00 2001
From: Dana Whitfield <dana@example.com>
Subject: [PATCH] Move things

---
 a.go | 3 ++-
 1 file changed, 2 insertions(+), 1 deletion(-)

diff --git a/a.go b/a.go
index 83db48f..bf2a1c9 100644
--- a/a.go
+++ b/a.go
@@ -3,3 +3,4 @@ func f() {
 keep
-old
+new
+newer
 keep too
@@ -20 +21 @@
-x
\ No newline at end of file
+y
\ No newline at end of file
diff --git a/new name.txt b/new name.txt
new file mode 100644
index 0000000..e69de29
diff --git a/gone.py b/gone.py
deleted file mode 100644
index 3b18e51..0000000
--- a/gone.py
+++ /dev/null
@@ -1 +0,0 @@
-print()
diff --git a/from.go b/to.go
similarity index 100%
rename from from.go
rename to to.go
diff --git a/logo.png b/logo.png
index 1111111..2222222 100644
Binary files a/logo.png and b/logo.png differ
diff --git "a/f\303\244r.go" "b/f\303\244r.go"
index 1111111..2222222 100644
--- "a/f\303\244r.go"
+++ "b/f\303\244r.go"
@@ -0,0 +1 @@
+package f
-- 
2.43.0

`

func TestParseGitDiff(t *testing.T) {
	got, err := ParseDiff([]byte(gitDiff))
	if err != nil {
		t.Fatal(err)
	}
	want := []File{
		{OldPath: "a.go", NewPath: "a.go", Hunks: []Hunk{
			{3, 3, 3, 4, []Line{{Context, 3, "keep"}, {Remove, 4, "old"}, {Add, 4, "new"}, {Add, 5, "newer"}, {Context, 6, "keep too"}}},
			{20, 1, 21, 1, []Line{{Remove, 21, "x"}, {Add, 21, "y"}}},
		}},
		{NewPath: "new name.txt", Change: Added},
		{OldPath: "gone.py", Change: Deleted, Hunks: []Hunk{{1, 1, 0, 0, []Line{{Remove, 1, "print()"}}}}},
		{OldPath: "from.go", NewPath: "to.go", Change: Renamed},
		{OldPath: "logo.png", NewPath: "logo.png", Binary: true},
		{OldPath: "fär.go", NewPath: "fär.go", Hunks: []Hunk{{0, 0, 1, 1, []Line{{Add, 1, "package f"}}}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

func TestParsePlainDiff(t *testing.T) {
	const plain = "Only in b: x\n" +
		"--- old/a.c\t2024-01-01 00:00:00.000000000 +0000\n+++ new/a.c\t2024-01-02 00:00:00.000000000 +0000\n" +
		"@@ -1 +1 @@\r\n-a\r\n+b\r\n" +
		"--- /dev/null\n+++ b/made.c\n@@ -0,0 +1,2 @@\n+--- x\n++++ y\n"
	got, err := ParseDiff([]byte(plain))
	if err != nil {
		t.Fatal(err)
	}
	want := []File{
		{OldPath: "old/a.c", NewPath: "new/a.c", Hunks: []Hunk{{1, 1, 1, 1, []Line{{Remove, 1, "a"}, {Add, 1, "b"}}}}},
		{NewPath: "made.c", Change: Added, Hunks: []Hunk{{0, 0, 1, 2, []Line{{Add, 1, "--- x"}, {Add, 2, "+++ y"}}}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

func TestParseDiffEmpty(t *testing.T) {
	for _, text := range []string{"", "\n", " \r\n\n"} {
		if files, err := ParseDiff([]byte(text)); err != nil || len(files) != 0 {
			t.Errorf("%q: %v, %v, want no files and no error", text, files, err)
		}
	}
}

func TestParseDiffErrors(t *testing.T) {
	const head = "--- a/x\n+++ b/x\n"
	tests := []struct {
		name, diff, want string
	}{
		{"web page", "<!DOCTYPE html>\n<html>", "line 1: no file header found"},
		{"hunk alone", "@@ -1 +1 @@\n-a\n+b\n", "line 1: a hunk without a file header"},
		{"bad header", head + "@@ -1 +x @@\n", "line 3: bad hunk header"},
		{"negative", head + "@@ -1,-1 +1 @@\n", "line 3: bad hunk header"},
		{"huge number", head + "@@ -1 +99999999999999999999 @@\n", "line 3: bad hunk header"},
		{"cut", head + "@@ -1,3 +1,3 @@\n a\n", "line 4: the diff ends inside the hunk of line 3"},
		{"too few lines", head + "@@ -1,2 +1,2 @@\n a\ndiff --git a/y b/y\n", "line 5: the hunk of line 3 does not hold the lines"},
		{"other lines", head + "@@ -1,0 +1,1 @@\n-a\n", "line 4: the hunk of line 3 does not hold the lines"},
		{"no names", "--- /dev/null\n+++ /dev/null\n", "line 2: both sides are /dev/null"},
		{"merge", "diff --cc x\n", "line 1: combined diffs"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseDiff([]byte(tt.diff))
			var fault *DiffError
			if !errors.As(err, &fault) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// format prints files as git does.
func format(files []File) string {
	var b strings.Builder
	for _, f := range files {
		fmt.Fprintf(&b, "diff --git a/%s b/%s\n", f.Path(), f.Path())
		old, new := "a/"+f.OldPath, "b/"+f.NewPath
		switch f.Change {
		case Added:
			old = "/dev/null"
			b.WriteString("new file mode 100644\n")
		case Deleted:
			new = "/dev/null"
			b.WriteString("deleted file mode 100644\n")
		}
		if f.Binary {
			fmt.Fprintf(&b, "Binary files %s and %s differ\n", old, new)
			continue
		}
		fmt.Fprintf(&b, "--- %s\n+++ %s\n", old, new)
		for _, h := range f.Hunks {
			fmt.Fprintf(&b, "@@ -%d,%d +%d,%d @@ section\n", h.OldStart, h.OldLines, h.NewStart, h.NewLines)
			for _, line := range h.Lines {
				fmt.Fprintf(&b, "%c%s\n", line.Op, line.Text)
			}
		}
	}
	return b.String()
}

// drawFile draws a file whose hunks are consistent.
func drawFile(t *rapid.T) File {
	name := rapid.StringMatching(`[a-z]{1,8}(/[a-z ]{1,6}[a-z])?\.(go|txt)`).Draw(t, "name")
	f := File{OldPath: name, NewPath: name, Change: rapid.SampledFrom([]Change{Modified, Added, Deleted}).Draw(t, "change")}
	switch f.Change {
	case Added:
		f.OldPath = ""
	case Deleted:
		f.NewPath = ""
	}
	if f.Binary = rapid.Bool().Draw(t, "binary"); f.Binary {
		return f
	}
	for range rapid.IntRange(0, 3).Draw(t, "hunks") {
		h := Hunk{OldStart: rapid.IntRange(1, 999).Draw(t, "old"), NewStart: rapid.IntRange(1, 999).Draw(t, "new")}
		number := h.NewStart
		ops := rapid.SliceOfN(rapid.SampledFrom([]Op{Context, Add, Remove}), 1, 8).Draw(t, "ops")
		for _, op := range ops {
			if op != Remove {
				h.NewLines++
			}
			if op != Add {
				h.OldLines++
			}
		}
		if h.NewLines == 0 {
			number++
		}
		for _, op := range ops {
			text := rapid.StringMatching(`[ -~]{0,12}|--- [a-z]|@@ -1 \+1 @@|diff --git a/x b/x`).Draw(t, "text")
			h.Lines = append(h.Lines, Line{op, number, text})
			if op != Remove {
				number++
			}
		}
		f.Hunks = append(f.Hunks, h)
	}
	return f
}

func TestParseDiffRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.Custom(drawFile), 1, 4).Draw(t, "files")
		text := format(want)
		got, err := ParseDiff([]byte(text))
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got\n%+v\nwant\n%+v\nfrom\n%s", got, want, text)
		}
	})
}

// FuzzParseDiff: the parser takes anything; what it accepts has hunks that
// hold what they announce, and a review of it neither fails nor quotes more
// findings than it may.
func FuzzParseDiff(f *testing.F) {
	f.Add([]byte(gitDiff))
	f.Add([]byte("--- a\n+++ b\n@@ -0,0 +1 @@\n+x\n"))
	f.Add([]byte("diff --git \"a/\\\" b/x\" b/y\n"))
	f.Add([]byte("diff --git  \n--- \n+++ \t\n@@ -,0 +1 @@\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		files, err := ParseDiff(data)
		if err != nil {
			var fault *DiffError
			if !errors.As(err, &fault) || fault.Line < 1 {
				t.Fatalf("error %#v", err)
			}
			return
		}
		for _, file := range files {
			for _, h := range file.Hunks {
				checkHunk(t, h)
			}
		}
		report := Review(files, Low)
		if len(report.Findings) > MaxFindings || report.Summary == "" {
			t.Fatalf("report %+v", report)
		}
		for _, finding := range report.Findings {
			if finding.Line < 0 {
				t.Fatalf("finding %+v", finding)
			}
		}
	})
}

func checkHunk(t *testing.T, h Hunk) {
	t.Helper()
	oldLines, newLines := 0, 0
	for _, line := range h.Lines {
		if line.Op != Add {
			oldLines++
		}
		if line.Op != Remove {
			newLines++
		}
	}
	if oldLines != h.OldLines || newLines != h.NewLines {
		t.Fatalf("hunk %+v holds %d old and %d new lines", h, oldLines, newLines)
	}
}
