package review

import (
	"fmt"
	"regexp"
	"strings"
)

// testDeclarations find a test and, where the line has it, its name.
var testDeclarations = []pattern{
	{lang: "go", re: regexp.MustCompile(`^func ((?:Test|Fuzz)\w*)\(`)},
	{lang: "python", re: regexp.MustCompile(`^\s*(?:async )?def (test\w*)\(`)},
	{lang: "js", re: regexp.MustCompile("^\\s*(?:it|test)(?:\\.each\\(.*\\))?\\(\\s*[\"'`](.+?)[\"'`]\\s*,")},
	{lang: "java", re: regexp.MustCompile(`^\s*@(?:Test|ParameterizedTest)\b()`)},
	{lang: "rust", re: regexp.MustCompile(`^\s*#\[(?:\w+::)?test\]()`)},
	{lang: "ruby", re: regexp.MustCompile(`^\s*(?:it|test) ["'](.+?)["']`)},
}

// testName returns the name of the test that a line declares, "" for one
// whose name is on another line.
func (f *fileView) testName(line lineView) (name string, ok bool) {
	if f.lang == nil || strings.TrimSpace(line.code) == "" {
		return "", false
	}
	for _, p := range testDeclarations {
		if p.lang == f.lang.name {
			if match := p.re.FindStringSubmatch(line.Text); match != nil {
				return match[1], true
			}
		}
	}
	return "", false
}

// removedTest compares what a file loses with what it gains. A test that comes
// back in any file was moved, and one that another takes the place of in the
// same file was renamed or rewritten.
func removedTest(d *diffView, f *fileView, report func(int, string)) {
	c := f.countTests(d.addedTests)
	if c.removed <= c.added {
		return
	}
	message := plural(c.removed, "test") + " removed"
	if c.added > 0 {
		message += fmt.Sprintf(" and %d added", c.added)
	}
	if len(c.names) > 0 {
		message += " (" + listNames(c.names) + ")"
	}
	line := c.line
	if f.Change == Deleted {
		line = 0
	}
	report(line, message+"; say why in the description, or keep the behaviour covered.")
}

// testCount is what happens to the tests of a file, moves left out.
type testCount struct {
	removed, added int
	names          []string // of the removed ones, where known
	line           int      // above the first removed one: below it the file may have ended
}

// countTests counts the tests of a file, given the names of those that the
// diff adds anywhere.
func (f *fileView) countTests(addedAnywhere map[string]bool) testCount {
	var c testCount
	moved := 0
	for _, line := range f.lines {
		name, ok := f.testName(line)
		switch {
		case !ok || line.Op == Context:
		case line.Op == Add:
			c.added++
		case addedAnywhere[name] && name != "":
			moved++
		default:
			c.removed++
			if c.removed == 1 {
				c.line = max(line.Number-1, 1)
			}
			if name != "" {
				c.names = append(c.names, name)
			}
		}
	}
	c.added = max(c.added-moved, 0) // what came back replaces no other
	return c
}

// listNames joins the first few names.
func listNames(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

var (
	skips = []pattern{
		{"go", regexp.MustCompile(`^\t[tbf]\.Skip(?:f|Now)?\(`), "A test is skipped"}, // deeper in, something was asked first
		{"python", regexp.MustCompile(`^\s*@(?:pytest\.mark\.skip|unittest\.skip)\b`), "A test is skipped"},
		{"js", regexp.MustCompile(`^\s*(?:(?:it|test|describe)\.skip|xit|xtest|xdescribe)\(`), "A test is skipped"},
		{"js", regexp.MustCompile(`^\s*(?:(?:it|test|describe)\.only|fit|fdescribe)\(`), "An only switches the rest of the suite off"},
		{"java", regexp.MustCompile(`^\s*@(?:Disabled|Ignore)\b`), "A test is skipped"},
		{"rust", regexp.MustCompile(`^\s*#\[ignore\b`), "A test is skipped"},
		{"ruby", regexp.MustCompile(`^\s*(?:xit|xdescribe) `), "A test is skipped"},
	}
	condition = regexp.MustCompile(`^\s*(?:\} else )?(?:if|switch|case|default)\b`)
)

// disabledTest looks for tests that are off for good: a skip that depends on
// the platform or on a flag is not.
func disabledTest(_ *diffView, f *fileView, report func(int, string)) {
	if f.lang == nil || !f.test && f.lang.name != "rust" { // Rust has its tests beside the code
		return
	}
	for _, h := range f.hunks {
		for i, line := range h {
			if line.Op != Add {
				continue
			}
			if p := matchAny(skips, f.lang, line.code); p != nil && !h.underCondition(i) {
				report(line.Number, p.what+"; fix or delete it, or say in an issue when it comes back.")
			}
		}
	}
}

// underCondition tells whether the line before line i opens a condition: a
// skip under `if testing.Short()` is not one for good.
func (h hunkView) underCondition(i int) bool {
	for i--; i >= 0; i-- {
		if h[i].Op != Remove && strings.TrimSpace(h[i].code) != "" {
			return condition.MatchString(h[i].code)
		}
	}
	return false
}
