package review

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The three lines are a high, a med and a low finding.
const (
	highLine = "+  debugger;"
	medLine  = "+  console.log(x);"
	lowLine  = "+  // TODO: later"
)

func reviewOf(t *testing.T, threshold Severity, lines ...string) Report {
	t.Helper()
	files, err := ParseDiff([]byte(diffOf("src/a.ts", lines...)))
	if err != nil {
		t.Fatal(err)
	}
	return Review(files, threshold)
}

func TestVerdict(t *testing.T) {
	tests := []struct {
		name      string
		lines     []string
		threshold Severity
		verdict   Verdict
		rules     string
	}{
		{"nothing", []string{"+  x();"}, Low, Approve, ""},
		{"low", []string{lowLine}, Low, Approve, "todo-no-owner"},
		{"med", []string{lowLine, medLine}, Low, Comment, "debug-print todo-no-owner"},
		{"high", []string{lowLine, medLine, highLine}, Low, RequestChanges, "debugger-left debug-print todo-no-owner"},
		{"med asked, low there", []string{lowLine}, Med, Approve, ""},
		{"med asked", []string{lowLine, medLine, highLine}, Med, RequestChanges, "debugger-left debug-print"},
		{"high asked, med there", []string{lowLine, medLine}, High, Approve, ""},
		{"high asked", []string{lowLine, medLine, highLine}, High, RequestChanges, "debugger-left"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			report := reviewOf(t, tt.threshold, tt.lines...)
			var rules []string
			for _, f := range report.Findings {
				rules = append(rules, f.Rule)
			}
			if report.Verdict != tt.verdict || strings.Join(rules, " ") != tt.rules {
				t.Errorf("got %s, %v; want %s, %s", report.Verdict, rules, tt.verdict, tt.rules)
			}
		})
	}
}

func TestSummary(t *testing.T) {
	tests := []struct {
		name   string
		report Report
		want   string
	}{
		{"empty", Review(nil, Low), "The diff is empty; there is nothing to review."},
		{"clean", reviewOf(t, Low, "+  x();", "-  y();"), "No findings in 1 file (+1 -1 lines)."},
		{"clean above a threshold", reviewOf(t, High, medLine), "No findings of severity high or above in 1 file (+1 -0 lines)."},
		{"one", reviewOf(t, Low, "+  x();", medLine), "1 finding (1 med) in 1 of 1 file (+2 -0 lines). Start with debug-print at src/a.ts:11."},
		{"several", reviewOf(t, Low, lowLine, highLine, highLine),
			"3 findings (2 high, 1 low) in 1 of 1 file (+3 -0 lines). Start with debugger-left at src/a.ts:11."},
		{"many", reviewOf(t, Low, slices.Repeat([]string{lowLine}, MaxFindings+50)...),
			"250 findings (250 low) in 1 of 1 file (+250 -0 lines). Start with todo-no-owner at src/a.ts:10. Only the first 200 are listed."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.report.Summary != tt.want {
				t.Errorf("got  %q\nwant %q", tt.report.Summary, tt.want)
			}
		})
	}
}

func TestReportJSON(t *testing.T) {
	for _, tt := range []struct {
		report Report
		want   string
	}{
		{reviewOf(t, Low, "+  x();"), `{"verdict":"approve","summary":"No findings in 1 file (+1 -0 lines).","findings":[]}`},
		{reviewOf(t, High, highLine), `{"verdict":"request-changes",` +
			`"summary":"1 finding (1 high) in 1 of 1 file (+1 -0 lines). Start with debugger-left at src/a.ts:10.",` +
			`"findings":[{"file":"src/a.ts","line":10,"severity":"high","message":"A debugger statement is left in the code; remove it.","rule":"debugger-left"}]}`},
	} {
		if got, err := json.Marshal(tt.report); err != nil || string(got) != tt.want {
			t.Errorf("got  %s, %v\nwant %s", got, err, tt.want)
		}
	}
}

func TestSeverityText(t *testing.T) {
	for _, s := range []Severity{Low, Med, High} {
		text, _ := s.MarshalText()
		var back Severity
		if err := back.UnmarshalText(text); err != nil || back != s {
			t.Errorf("%s: %v, %v", text, back, err)
		}
	}
	for _, text := range []string{"", "critical", "LOW", "0"} {
		if err := new(Severity).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is taken for a severity", text)
		}
	}
	if got := Severity(7).String(); got != "Severity(7)" {
		t.Errorf("got %s", got)
	}
}

// The order of findings is part of the answer: falling severity, then place.
// A higher threshold only cuts findings off the end.
func TestReviewProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var diff strings.Builder
		for i := range rapid.IntRange(1, 4).Draw(t, "files") {
			lines := rapid.SliceOfN(rapid.SampledFrom([]string{highLine, medLine, lowLine, "+  x();", "   x();", "-  x();"}), 1, 20).Draw(t, "lines")
			diff.WriteString(diffOf(fmt.Sprintf("src/%d.ts", i), lines...))
		}
		files, err := ParseDiff([]byte(diff.String()))
		if err != nil {
			t.Fatal(err)
		}
		all := Review(files, Low).Findings
		if !slices.IsSortedFunc(all, func(a, b Finding) int {
			if a.Severity != b.Severity {
				return int(b.Severity - a.Severity)
			}
			if a.File != b.File {
				return strings.Compare(a.File, b.File)
			}
			return a.Line - b.Line
		}) {
			t.Fatalf("out of order: %+v", all)
		}
		for _, threshold := range []Severity{Med, High} {
			want := slices.DeleteFunc(slices.Clone(all), func(f Finding) bool { return f.Severity < threshold })
			if got := Review(files, threshold).Findings; !slices.Equal(got, want) {
				t.Fatalf("threshold %s: got %+v, want %+v", threshold, got, want)
			}
		}
	})
}

func BenchmarkReview(b *testing.B) {
	lines := []string{
		"+import { S3Client } from \"@aws-sdk/client-s3\";",
		"+  const rows = invoices.map((i) => [i.number, i.customer].join(\",\")); // one a line",
		"   return [\"number,customer\", ...rows].join(\"\\n\");",
		"-  if err := h.Store.Put(name, r.Body); err != nil {",
	}
	diff := []byte(diffOf("src/a.ts", slices.Repeat(lines, 5000)...))
	b.SetBytes(int64(len(diff)))
	for b.Loop() {
		files, err := ParseDiff(diff)
		if err != nil {
			b.Fatal(err)
		}
		Review(files, Low)
	}
}
