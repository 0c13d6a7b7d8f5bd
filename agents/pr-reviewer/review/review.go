package review

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Severity ranks findings. Its JSON form is its String.
type Severity int

// The severities, in rising order. See the package documentation for what
// each does to the verdict.
const (
	Low Severity = iota
	Med
	High
)

// String returns low, med or high.
func (s Severity) String() string {
	switch s {
	case Low:
		return "low"
	case Med:
		return "med"
	case High:
		return "high"
	}
	return fmt.Sprintf("Severity(%d)", int(s))
}

// MarshalText implements [encoding.TextMarshaler].
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. It takes low, med and
// high and nothing else.
func (s *Severity) UnmarshalText(text []byte) error {
	for _, known := range []Severity{Low, Med, High} {
		if string(text) == known.String() {
			*s = known
			return nil
		}
	}
	return fmt.Errorf("severity is not one of low, med, high")
}

// A Verdict is what the reviewer advises.
type Verdict string

// The verdicts.
const (
	Approve        Verdict = "approve"
	RequestChanges Verdict = "request-changes"
	Comment        Verdict = "comment"
)

// A Finding is one place that a rule objects to.
type Finding struct {
	// File is the path of the file, see [File.Path].
	File string `json:"file"`
	// Line is the line in the new file, from 1; 0 means the file as a whole.
	// What is gone is reported at the line above the gap.
	Line int `json:"line"`
	// Severity is the rule's.
	Severity Severity `json:"severity"`
	// Message says what is wrong and what to do, without quoting the line.
	Message string `json:"message"`
	// Rule is the ID of the [Rule].
	Rule string `json:"rule"`
}

// A Report is the outcome of a review.
type Report struct {
	// Verdict follows from the findings; see the package documentation.
	Verdict Verdict `json:"verdict"`
	// Summary is the report in one or two sentences.
	Summary string `json:"summary"`
	// Findings are ordered by falling severity, then file and line. There are
	// at most [MaxFindings]; the summary counts them all.
	Findings []Finding `json:"findings"`
}

// MaxFindings bounds the findings that a [Report] lists.
const MaxFindings = 200

// Review judges a change by all [Rules] and reports what is at least as
// severe as threshold.
func Review(files []File, threshold Severity) Report {
	d := newDiffView(files)
	findings := []Finding{}
	for _, rule := range Rules() {
		if rule.Severity < threshold {
			continue
		}
		for _, f := range d.files {
			rule.check(d, f, func(line int, message string) {
				findings = append(findings, Finding{File: f.path, Line: line, Severity: rule.Severity, Message: message, Rule: rule.ID})
			})
		}
	}
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	report := Report{Verdict: verdict(findings), Summary: summary(d, findings, threshold), Findings: findings}
	if len(findings) > MaxFindings {
		report.Findings = findings[:MaxFindings]
	}
	return report
}

// verdict needs the findings by falling severity.
func verdict(findings []Finding) Verdict {
	switch {
	case len(findings) == 0 || findings[0].Severity == Low:
		return Approve
	case findings[0].Severity == Med:
		return Comment
	}
	return RequestChanges
}

// summary says in words what the findings, by falling severity, amount to.
func summary(d *diffView, findings []Finding, threshold Severity) string {
	scope := fmt.Sprintf("%s (+%d -%d lines)", plural(len(d.files), "file"), d.added, d.removed)
	switch {
	case len(d.files) == 0:
		return "The diff is empty; there is nothing to review."
	case len(findings) == 0 && threshold == Low:
		return "No findings in " + scope + "."
	case len(findings) == 0:
		return fmt.Sprintf("No findings of severity %s or above in %s.", threshold, scope)
	}
	var counts []string
	touched := map[string]bool{}
	for _, severity := range []Severity{High, Med, Low} {
		n := 0
		for _, f := range findings {
			touched[f.File] = true
			if f.Severity == severity {
				n++
			}
		}
		if n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, severity))
		}
	}
	first := findings[0]
	where := first.File
	if first.Line > 0 {
		where = fmt.Sprintf("%s:%d", first.File, first.Line)
	}
	text := fmt.Sprintf("%s (%s) in %d of %s. Start with %s at %s.",
		plural(len(findings), "finding"), strings.Join(counts, ", "), len(touched), scope, first.Rule, where)
	if len(findings) > MaxFindings {
		text += fmt.Sprintf(" Only the first %d are listed.", MaxFindings)
	}
	return text
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// A diffView is a diff, prepared for the rules.
type diffView struct {
	files          []*fileView
	added, removed int             // lines
	addedTests     map[string]bool // names of the tests that the diff adds, in any file
}

// A fileView is a file of a diff, prepared for the rules.
type fileView struct {
	*File
	path      string
	lang      *language // nil if not code
	test      bool      // test code, or data for it
	generated bool      // generated, vendored or a lock file: nobody reads it
	hunks     []hunkView
}

// A hunkView is a hunk whose lines are split into code and comment.
type hunkView []lineView

// A lineView is a line with its code and comment told apart; both are empty
// in a file that is not code.
type lineView struct {
	Line
	code, comment string
}

func newDiffView(files []File) *diffView {
	d := &diffView{addedTests: map[string]bool{}}
	for i := range files {
		f := newFileView(&files[i])
		d.files = append(d.files, f)
		for _, line := range f.lines {
			switch line.Op {
			case Add:
				d.added++
				if name, ok := f.testName(line); ok {
					d.addedTests[name] = true
				}
			case Remove:
				d.removed++
			}
		}
	}
	return d
}

func newFileView(file *File) *fileView {
	name := file.Path()
	f := &fileView{File: file, path: name, lang: languageOf(name), test: testPath.MatchString(name), generated: generatedPath.MatchString(name)}
	for _, h := range file.Hunks {
		view := make(hunkView, len(h.Lines))
		for i, line := range h.Lines {
			view[i].Line = line
			if f.lang != nil {
				view[i].code, view[i].comment = f.lang.split(line.Text)
			}
			if line.Number <= 5 && line.Op != Remove && generatedMark.MatchString(line.Text) {
				f.generated = true
			}
		}
		f.hunks = append(f.hunks, view)
	}
	return f
}

// lines yields every line of the file with its position within its hunk.
func (f *fileView) lines(yield func(int, lineView) bool) {
	for _, h := range f.hunks {
		for i, line := range h {
			if !yield(i, line) {
				return
			}
		}
	}
}

// addedCode yields the added lines that hold code which somebody wrote and
// which runs outside of tests.
func (f *fileView) addedCode(yield func(lineView) bool) {
	if f.lang == nil || f.test || f.generated {
		return
	}
	for _, line := range f.lines {
		if line.Op == Add && strings.TrimSpace(line.code) != "" && !yield(line) {
			return
		}
	}
}
