package rootfs

import (
	"strings"
	"unicode/utf8"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/truncate"
)

const maxPathBytes = 4096

// checkPath accepts paths in one form only: names with one slash between them. Other
// spellings of a path are refused rather than cleaned, so that what the operator's rules
// and records see is what is opened.
func checkPath(path string) error {
	bad := func(why string) error {
		return failure.Errorf(failure.InvalidArgument, "the path %s %s", truncate.Quote(path), why)
	}
	switch {
	case path == "":
		return bad("is empty")
	case len(path) > maxPathBytes:
		return bad("is too long")
	case !utf8.ValidString(path):
		return bad("is not UTF-8")
	case strings.HasPrefix(path, "/"):
		return bad("is absolute: paths begin in one of this agent's folders")
	case strings.Contains(path, "\\"):
		return bad(`has a "\": folders are separated by "/"`)
	}
	for name := range strings.SplitSeq(path, "/") {
		switch {
		case name == "..":
			return bad(`has "..", which is not allowed`)
		case name == "" || name == ".":
			return bad(`has an empty part or "."`)
		case strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c == 0x7f }):
			return bad("has control characters")
		}
	}
	return nil
}
