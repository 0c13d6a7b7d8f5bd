package review

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// A Change says what happens to a file.
type Change int

// The changes of a file.
const (
	Modified Change = iota
	Added
	Deleted
	Renamed
)

// A File is one file of a diff.
type File struct {
	// OldPath and NewPath are slash-separated, without the a/ and b/ of git.
	// OldPath is empty for an added file, NewPath for a deleted one.
	OldPath, NewPath string
	// Change says what happens to the file.
	Change Change
	// Binary is set when the diff only says that the file differs.
	Binary bool
	// Hunks are in file order.
	Hunks []Hunk
}

// Path returns the path that a reader of the change would use: the new one,
// or the old one of a deleted file.
func (f *File) Path() string {
	if f.NewPath != "" {
		return f.NewPath
	}
	return f.OldPath
}

// A Hunk is a run of changed lines and their surroundings.
type Hunk struct {
	// OldStart, OldLines, NewStart and NewLines are as in the header
	// "@@ -OldStart,OldLines +NewStart,NewLines @@".
	OldStart, OldLines, NewStart, NewLines int
	// Lines holds the lines of the hunk in order.
	Lines []Line
}

// An Op says on which side of a diff a line is.
type Op byte

// The kinds of lines in a hunk.
const (
	Context Op = ' '
	Add     Op = '+'
	Remove  Op = '-'
)

// A Line is one line of a hunk.
type Line struct {
	// Op tells context, added and removed lines apart.
	Op Op
	// Number is the line's number in the new file. For a removed line it is
	// the number of the new line that follows the removal.
	Number int
	// Text is the line without its first column and its line ending.
	Text string
}

// A DiffError says where a diff is malformed.
type DiffError struct {
	// Line is the number of the faulty line of the diff, from 1.
	Line int
	// Reason says what is wrong, without quoting the line.
	Reason string
}

func (e *DiffError) Error() string {
	return fmt.Sprintf("the diff is malformed at its line %d: %s", e.Line, e.Reason)
}

// ParseDiff reads a unified diff as git, GitHub's .diff and .patch addresses and
// diff -u print it. Text before, between and after the files (mail headers,
// commit messages, signatures) is skipped. An input of white space only is a
// change without files; any other input without a file is an error, as are
// hunks that hold other line counts than they announce. Errors are [*DiffError].
func ParseDiff(data []byte) ([]File, error) {
	p := &diffParser{rest: data}
	for p.next() {
		if err := p.header(); err != nil {
			return nil, err
		}
	}
	p.flush()
	if len(p.files) == 0 && len(bytes.TrimSpace(data)) > 0 {
		return nil, &DiffError{Line: 1, Reason: "no file header found; this is not a unified diff"}
	}
	return p.files, nil
}

// diffParser walks the lines of a diff.
type diffParser struct {
	rest   []byte // after line
	line   string // current line, without its ending
	number int    // of line, from 1
	files  []File

	file    File // being read
	inFile  bool
	gitFile bool // file began with "diff --git", which the next "--- " belongs to
}

// next moves to the next line; false at the end.
func (p *diffParser) next() bool {
	if len(p.rest) == 0 {
		return false
	}
	line, rest, _ := bytes.Cut(p.rest, []byte("\n"))
	p.line, p.rest = strings.TrimSuffix(string(line), "\r"), rest
	p.number++
	return true
}

func (p *diffParser) fault(reason string) error { return &DiffError{Line: p.number, Reason: reason} }

// flush finishes the file being read.
func (p *diffParser) flush() {
	if p.inFile {
		p.files = append(p.files, p.file)
	}
	p.file, p.inFile, p.gitFile = File{}, false, false
}

// header handles a line outside of hunks.
func (p *diffParser) header() error {
	key, value, _ := strings.Cut(p.line, " ")
	switch {
	case strings.HasPrefix(p.line, "diff --git "):
		p.flush()
		p.inFile, p.gitFile = true, true
		p.file.OldPath, p.file.NewPath = gitPaths(p.line[len("diff --git "):])
		return nil
	case strings.HasPrefix(p.line, "diff --cc "), strings.HasPrefix(p.line, "diff --combined "), strings.HasPrefix(p.line, "@@@ "):
		return p.fault("combined diffs of merges are not supported; make the diff against one parent")
	case key == "---":
		return p.oldName(value)
	case key == "@@":
		return p.hunk()
	}
	if p.gitFile {
		p.extended()
	}
	return nil
}

// extended handles git's lines between "diff --git" and the first hunk.
func (p *diffParser) extended() {
	switch {
	case strings.HasPrefix(p.line, "new file mode "):
		p.file.Change, p.file.OldPath = Added, ""
	case strings.HasPrefix(p.line, "deleted file mode "):
		p.file.Change, p.file.NewPath = Deleted, ""
	case strings.HasPrefix(p.line, "rename from "):
		p.file.Change, p.file.OldPath = Renamed, unquotePath(p.line[len("rename from "):])
	case strings.HasPrefix(p.line, "rename to "):
		p.file.Change, p.file.NewPath = Renamed, unquotePath(p.line[len("rename to "):])
	case strings.HasPrefix(p.line, "copy to "):
		p.file.Change, p.file.OldPath, p.file.NewPath = Added, "", unquotePath(p.line[len("copy to "):])
	case strings.HasPrefix(p.line, "Binary files "), p.line == "GIT binary patch":
		p.file.Binary = true
	}
}

// oldName handles "--- name", which "+++ name" must follow. A "---" that is
// something else, such as the rule under a commit message, is skipped.
func (p *diffParser) oldName(name string) error {
	if !bytes.HasPrefix(p.rest, []byte("+++ ")) {
		return nil
	}
	if !p.gitFile || len(p.file.Hunks) > 0 {
		p.flush() // a plain diff -u has no other sign of a new file
		p.inFile = true
	}
	p.next()
	oldPath, newPath := namePath(name), namePath(p.line[len("+++ "):])
	switch {
	case oldPath == "" && newPath == "":
		return p.fault("both sides are /dev/null")
	case oldPath == "":
		p.file.Change = Added
	case newPath == "":
		p.file.Change = Deleted
	}
	p.file.OldPath, p.file.NewPath = oldPath, newPath
	return nil
}

// hunk reads the hunk whose header is the current line.
func (p *diffParser) hunk() error {
	if !p.inFile {
		return p.fault("a hunk without a file header")
	}
	h, ok := parseHunkHeader(p.line)
	if !ok {
		return p.fault("bad hunk header; want @@ -start,lines +start,lines @@")
	}
	header := p.number
	left := remainder{h.OldLines, h.NewLines}
	number := h.NewStart
	if h.NewLines == 0 {
		number++ // an empty side is given as the line before it
	}
	for left != (remainder{}) {
		if !p.next() {
			return p.fault(fmt.Sprintf("the diff ends inside the hunk of line %d", header))
		}
		op, text := Context, ""
		if p.line != "" { // some mailers cut the lone space of an empty context line
			op, text = Op(p.line[0]), p.line[1:]
		}
		if op == noNewline {
			continue
		}
		if !left.take(op) {
			return p.fault(fmt.Sprintf("the hunk of line %d does not hold the lines that its header announces", header))
		}
		h.Lines = append(h.Lines, Line{Op: op, Number: number, Text: text})
		if op != Remove {
			number++
		}
	}
	p.file.Hunks = append(p.file.Hunks, h)
	return nil
}

// noNewline begins "\ No newline at end of file", which is no line of a file.
const noNewline Op = '\\'

// A remainder counts the lines that a hunk still has to hold, per side.
type remainder struct{ old, new int }

// take counts a line; false if it has no place in the hunk.
func (r *remainder) take(op Op) bool {
	switch op {
	case Context:
		r.old--
		r.new--
	case Add:
		r.new--
	case Remove:
		r.old--
	default:
		return false
	}
	return r.old >= 0 && r.new >= 0
}

// parseHunkHeader reads "@@ -1,2 +3,4 @@ section"; ",1" may be left out.
func parseHunkHeader(line string) (Hunk, bool) {
	ranges, _, found := strings.Cut(strings.TrimPrefix(line, "@@ -"), " @@")
	oldRange, newRange, both := strings.Cut(ranges, " +")
	if !found || !both || !strings.HasPrefix(line, "@@ -") {
		return Hunk{}, false
	}
	var h Hunk
	var okOld, okNew bool
	h.OldStart, h.OldLines, okOld = parseRange(oldRange)
	h.NewStart, h.NewLines, okNew = parseRange(newRange)
	return h, okOld && okNew
}

// maxLineNumber keeps line arithmetic far from overflow.
const maxLineNumber = 1 << 30

func parseRange(text string) (start, lines int, ok bool) {
	first, second, hasLines := strings.Cut(text, ",")
	start, err := strconv.Atoi(first)
	lines = 1
	if err == nil && hasLines {
		lines, err = strconv.Atoi(second)
	}
	ok = err == nil && start >= 0 && lines >= 0 && start <= maxLineNumber && lines <= maxLineNumber
	return start, lines, ok
}

// gitPaths splits the rest of a "diff --git a/old b/new" line. Names with
// spaces are ambiguous there: then both halves must be equal, as they are for
// every change but a rename, whose names come on lines of their own.
func gitPaths(text string) (oldPath, newPath string) {
	if strings.HasPrefix(text, `"`) || strings.HasSuffix(text, `"`) {
		first, second, ok := strings.Cut(text, " b/")
		if i := strings.Index(text, ` "b/`); i >= 0 {
			first, second, ok = text[:i], text[i+1:], true
		} else {
			second = "b/" + second
		}
		if ok {
			return namePath(first), namePath(second)
		}
		return text, text
	}
	if half := len(text) / 2; len(text)%2 == 1 && text[half] == ' ' {
		if a, b := namePath(text[:half]), namePath(text[half+1:]); a == b {
			return a, b
		}
	}
	first, second, _ := strings.Cut(text, " ")
	return namePath(first), namePath(second)
}

// namePath turns a name of a "---" or "+++" line into a path; "" is /dev/null.
func namePath(name string) string {
	name, _, _ = strings.Cut(name, "\t") // diff -u adds the time after a tab
	name = unquotePath(name)
	if name == "/dev/null" {
		return ""
	}
	if rest, ok := strings.CutPrefix(name, "a/"); ok && rest != "" {
		return rest
	}
	if rest, ok := strings.CutPrefix(name, "b/"); ok && rest != "" {
		return rest
	}
	return name
}

// unquotePath undoes git's quoting of unusual names, "a\303\244.txt". A name
// that is not quoted, or not well, is returned as it is.
func unquotePath(name string) string {
	if len(name) < 2 || name[0] != '"' || name[len(name)-1] != '"' {
		return name
	}
	// Go reads the same escapes as git writes, save that \ooo must be a rune
	// boundary there; Unquote takes octal bytes as they come.
	if text, err := strconv.Unquote(name); err == nil {
		return text
	}
	return name
}
