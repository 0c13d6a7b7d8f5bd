package rootfs

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/truncate"
)

// The bounds of one search.
const (
	maxSearchDepth = 32
	maxSearchFiles = 10_000
	maxSearchBytes = 256 << 20
	maxLineBytes   = 500 // of a line that is shown
)

// A Match is a line that has the text.
type Match struct {
	Path string `json:"path"`
	Line int    `json:"line"` // from 1
	Text string `json:"text"` // the line, cut to a readable length
}

// errEnough ends a walk whose bounds are reached.
var errEnough = errors.New("enough")

// Search returns the lines of files below dir that contain text, in the order of the
// paths. Links are not followed, and files that are not UTF-8, too large or not to be
// read are passed over. more says that a bound ended the search before its end.
func (t *Tree) Search(ctx context.Context, dir, text string, limit int) (matches []Match, more bool, err error) {
	if text == "" || !utf8.ValidString(text) || strings.ContainsAny(text, "\r\n") {
		return nil, false, failure.Errorf(failure.InvalidArgument, "the text to search for is empty, not UTF-8, or more than one line")
	}
	s := search{tree: t, text: []byte(text), limit: limit}
	dirs := []string{dir}
	if dir == "" && t.folders[""] == nil {
		dirs = t.names
	}
	for _, d := range dirs {
		root, name, err := t.dir(d)
		if err == nil {
			err = s.walk(ctx, root, name, d, 0)
		}
		if errors.Is(err, errEnough) {
			return s.matches, true, nil
		}
		if err != nil {
			return nil, false, err
		}
	}
	return s.matches, false, nil
}

type search struct {
	tree    *Tree
	text    []byte
	limit   int
	files   int
	bytes   int64
	matches []Match
}

// walk searches a folder; shown is how the caller writes its path.
func (s *search) walk(ctx context.Context, root *os.Root, name, shown string, depth int) error {
	if depth > maxSearchDepth {
		return errEnough
	}
	entries, err := readDir(ctx, root, name, shown)
	if err != nil {
		if depth > 0 && ctx.Err() == nil {
			return nil // removed meanwhile, or not for this agent
		}
		return err
	}
	for _, e := range entries {
		below, shownBelow := join(name, e.Name()), join(shown, e.Name())
		switch {
		case e.IsDir():
			err = s.walk(ctx, root, below, shownBelow, depth+1)
		case e.Type().IsRegular():
			err = s.file(ctx, root, below, shownBelow)
		case e.Type()&fs.ModeSymlink != 0:
			continue // its target is searched where it lies
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *search) file(ctx context.Context, root *os.Root, name, shown string) error {
	if s.files++; s.files > maxSearchFiles {
		return errEnough
	}
	file, info, err := s.tree.openIn(root, name, shown)
	if err != nil {
		return nil // one file that cannot be read does not end the search
	}
	defer file.Close()
	if info.Size() > s.tree.options.MaxBytes {
		return nil // it is not read, and does not count
	}
	if s.bytes += info.Size(); s.bytes > maxSearchBytes {
		return errEnough
	}
	content, err := s.tree.readAll(ctx, shown, file, info.Size())
	if ended := failure.Ended(ctx, "the search"); ended != nil {
		return ended
	}
	if err != nil || !utf8.Valid(content) {
		return nil // as above
	}
	for number := 1; len(content) > 0; number++ {
		var line []byte
		line, content, _ = bytes.Cut(content, []byte("\n"))
		if !bytes.Contains(line, s.text) {
			continue
		}
		if len(s.matches) == s.limit {
			return errEnough
		}
		s.matches = append(s.matches, Match{Path: shown, Line: number, Text: truncate.String(string(bytes.TrimSuffix(line, []byte("\r"))), maxLineBytes)})
	}
	return nil
}
