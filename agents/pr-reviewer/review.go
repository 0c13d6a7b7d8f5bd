package main

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A report is the result of review-pr.
type report struct {
	Verdict  string    `json:"verdict"`
	Summary  string    `json:"summary"`
	Findings []finding `json:"findings"` // most severe first
}

// A finding is one place that a rule objects to. Its message never quotes the
// diff: a leaked key must not travel on into responses, logs and audit records.
type finding struct {
	File     string `json:"file"`
	Line     int    `json:"line"` // in the new file
	Severity string `json:"severity"`
	Message  string `json:"message"`
	Rule     string `json:"rule"`
}

// A rule objects to added lines that match its pattern. Lines that the change
// leaves alone are not its author's doing.
type rule struct {
	id, severity string
	pattern      *regexp.Regexp
	except       *regexp.Regexp // lines that are fine although they match
	skip         *regexp.Regexp // paths of files that the rule does not read
	message      string
}

var (
	nothing  = regexp.MustCompile(`$.`) // matches no text
	comment  = regexp.MustCompile(`^\s*(//|#|\*|/\*)`)
	notCode  = regexp.MustCompile(`\.(md|txt|json|lock|sum|svg|patch)$|(^|/)(vendor|node_modules|testdata)/`)
	tests    = regexp.MustCompile(notCode.String() + `|_test\.go$|(^|/)tests?/|(^|/)test_\w+\.py$|\.(test|spec)\.\w+$`)
	programs = regexp.MustCompile(tests.String() + `|(^|/)(cmd|scripts|examples)/|(^|/)main\.\w+$`)
)

var rules = []rule{
	{"leaked-key", "high", regexp.MustCompile(`\bAKIA[A-Z2-7]{16}\b|\bgh[pousr]_\w{36}|\bxox[abps]-[\w-]{20}|\bsk_live_\w{20}|-----BEGIN [A-Z ]*PRIVATE KEY-----`),
		nothing, nothing, "This looks like a key; revoke it, then load it from the secret store."},
	{"conflict-marker", "high", regexp.MustCompile(`^<<<<<<< `),
		nothing, nothing, "An unresolved merge conflict begins here; resolve it and commit the result."},
	{"debugger-left", "high", regexp.MustCompile(`^\s*debugger\s*;?$|\bpdb\.set_trace\(|^\s*breakpoint\(\)|\bbinding\.pry\b`),
		comment, notCode, "A breakpoint is left in the code; remove it."},
	{"tls-verify-off", "high", regexp.MustCompile(`\bInsecureSkipVerify\s*[:=]\s*true\b|\brejectUnauthorized\s*:\s*false\b|\bverify\s*=\s*False\b`),
		comment, tests, "TLS certificates are not verified here; trust the peer's CA instead."},
	{"debug-print", "med", regexp.MustCompile(`\bconsole\.(log|debug)\(|\bfmt\.Print(f|ln)?\(|^\s*print\(`),
		comment, programs, "Console output is left in library code; remove it or use the logger."},
	{"todo-no-owner", "low", regexp.MustCompile(`\b(TODO|FIXME)\b`), regexp.MustCompile(`\b(TODO|FIXME)(\(\S+\)|.*#\d+|.*https?://)`),
		notCode, "A TODO without an owner; name a person or an issue, as in TODO(name) or TODO(#123)."},
}

// review judges a change. The worst finding at or above the threshold decides
// the verdict: high requests changes, med comments, low approves.
func review(files []file, threshold string) report {
	findings := removedTests(files)
	for _, f := range files {
		findings = append(findings, judge(f)...)
	}
	rank := func(severity string) int { return slices.Index([]string{"low", "med", "high"}, severity) }
	findings = slices.DeleteFunc(findings, func(f finding) bool { return rank(f.Severity) < rank(threshold) })
	if len(findings) == 0 {
		return report{"approve", fmt.Sprintf("No findings of severity %s or above in %d files.", threshold, len(files)), []finding{}}
	}
	slices.SortStableFunc(findings, func(a, b finding) int {
		return cmp.Or(rank(b.Severity)-rank(a.Severity), cmp.Compare(a.File, b.File), a.Line-b.Line)
	})
	counts := map[string]int{}
	for _, f := range findings {
		counts[f.Severity]++
	}
	worst := findings[0]
	return report{
		Verdict: map[string]string{"high": "request-changes", "med": "comment", "low": "approve"}[worst.Severity],
		Summary: fmt.Sprintf("Findings: %d high, %d med, %d low, in %d files. Start with %s at %s:%d.",
			counts["high"], counts["med"], counts["low"], len(files), worst.Rule, worst.File, worst.Line),
		Findings: findings[:min(len(findings), maxFindings)],
	}
}

const maxFindings = 200   // maxItems in the output schema
const hugeHunkLines = 300 // changed lines; reviewers skim what is longer

// judge applies the rules that look at one file.
func judge(f file) []finding {
	var found []finding
	changed := map[int]int{} // lines of each hunk
	for _, l := range f.lines {
		if l.op != ' ' {
			changed[l.hunk]++
		}
		if l.op != ' ' && changed[l.hunk] == hugeHunkLines && !notCode.MatchString(f.path) {
			found = append(found, finding{f.path, l.hunk, "low",
				fmt.Sprintf("A hunk changes %d lines or more; split the change so that each part can be reviewed.", hugeHunkLines), "huge-hunk"})
		}
		for _, r := range rules {
			if l.op == '+' && !r.skip.MatchString(f.path) && r.pattern.MatchString(l.text) && !r.except.MatchString(l.text) {
				found = append(found, finding{f.path, l.number, r.severity, r.message, r.id})
			}
		}
	}
	return found
}

// testHead matches the first line of a test in Go, Python and JavaScript.
var testHead = regexp.MustCompile(`^func Test\w*\(|^\s*def test_\w*\(|^\s*(it|test)\(["'\x60]`)

// removedTests counts over the whole change, so that a test may be renamed or
// moved to another file. The finding stands above the first removed test.
func removedTests(files []file) []finding {
	var first finding
	counts := map[byte]int{}
	for _, f := range files {
		for _, l := range f.lines {
			if !testHead.MatchString(l.text) {
				continue
			}
			if counts[l.op]++; l.op == '-' && counts['-'] == 1 {
				first = finding{File: f.path, Line: max(l.number-1, 0), Severity: "med", Rule: "removed-test"}
			}
		}
	}
	if counts['-'] <= counts['+'] {
		return nil
	}
	first.Message = fmt.Sprintf("The change removes %d tests and adds %d; say why in the description, or keep the behaviour covered.", counts['-'], counts['+'])
	return []finding{first}
}

// A file is one file of a diff.
type file struct {
	path  string // after the change; before it if the file is deleted
	lines []line
}

// A line is context (' '), added ('+') or removed ('-').
type line struct {
	op     byte
	number int // in the new file; for a removed line, of the line that follows
	hunk   int // number of the first line of its hunk
	text   string
}

// hunkHeader is "@@ -start,count +start,count @@"; a count of 1 is left out.
var hunkHeader = regexp.MustCompile(`^@@ -\d{1,9}(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@`)

// parseDiff reads a unified diff as git, GitHub and diff -u print it. Text
// around the files, such as a commit message, is skipped.
func parseDiff(diff string) ([]file, error) {
	var files []file
	var oldName string
	var oldLeft, newLeft int // lines that the hunk still has to hold, of each side
	var next line            // place of the next line
	for i, text := range strings.Split(strings.TrimSuffix(diff, "\n"), "\n") {
		text = strings.TrimSuffix(text, "\r")
		header := hunkHeader.FindStringSubmatch(text)
		switch {
		case strings.HasPrefix(text, "\\"): // "\ No newline at end of file"
		// The counts come before everything else: in a hunk "--- a" is the removed
		// line "-- a".
		case oldLeft+newLeft > 0:
			text = cmp.Or(text, " ") // some mailers cut the space of an empty line
			next.op, next.text = text[0], text[1:]
			files[len(files)-1].lines = append(files[len(files)-1].lines, next)
			if next.op != '+' {
				oldLeft--
			}
			if next.op != '-' {
				newLeft--
				next.number++
			}
			if min(oldLeft, newLeft) < 0 || !strings.ContainsRune(" +-", rune(next.op)) {
				return nil, fmt.Errorf("line %d: the hunk does not hold the lines that its header announces", i+1)
			}
		case strings.HasPrefix(text, "--- "):
			oldName = diffName(text[4:], "a/")
		case strings.HasPrefix(text, "+++ "):
			files = append(files, file{path: cmp.Or(diffName(text[4:], "b/"), oldName, "/dev/null")})
		case header != nil && len(files) > 0:
			oldLeft, newLeft = atoi(header[1]), atoi(header[3])
			next = line{number: atoi(header[2]), hunk: atoi(header[2])}
			if newLeft == 0 { // the header names the line before an empty side
				next.number++
			}
		case strings.HasPrefix(text, "@@"):
			return nil, fmt.Errorf("line %d: a hunk header that is malformed, or belongs to no file", i+1)
		}
	}
	switch {
	case oldLeft+newLeft > 0:
		return nil, errors.New("it ends inside a hunk")
	case len(files) == 0 && strings.TrimSpace(diff) != "" && !strings.Contains(diff, "diff --git "):
		return nil, errors.New("it is not a unified diff")
	}
	return files, nil
}

// atoi reads a number of a hunk header.
func atoi(digits string) int {
	n, _ := strconv.Atoi(cmp.Or(digits, "1")) // hunkHeader matches nothing but digits
	return n
}

// diffName is the path after "--- " or "+++ "; "" is no file. git puts side
// before it, and diff -u puts a tab and the time after it.
func diffName(name, side string) string {
	name, _, _ = strings.Cut(name, "\t")
	if name == "/dev/null" {
		return ""
	}
	return strings.TrimPrefix(name, side)
}
