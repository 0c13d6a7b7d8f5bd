package search

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// A section is a part of a note under one heading: the unit that is ranked.
type section struct {
	title      string // of the note, and of the section if it has its own
	path       string
	paragraphs []paragraph
	words      map[string]int // with their counts, of title and paragraphs
	length     int            // sum of the counts
}

// A paragraph is a run of lines without a blank one. An item of a list and a
// row of a table is a paragraph of its own.
type paragraph struct {
	line int // of its first line, from 1
	text string
}

// titleWeight is how often the words of a title count.
const titleWeight = 2

// An Index holds the sections of some notes. It never changes, and is safe for
// concurrent use.
type Index struct {
	sections []section
	holding  map[string]int // word -> number of sections that hold it
	average  float64        // length of a section
}

// Load indexes the files *.md of a folder of fsys. The paths of results begin
// with prefix, the folder's name in the eyes of the reader.
func Load(fsys fs.FS, prefix string) (*Index, error) {
	names, err := fs.Glob(fsys, "*.md")
	if err != nil {
		return nil, fmt.Errorf("list the notes: %w", err)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("there are no notes (*.md) in %s", prefix)
	}
	x := &Index{holding: map[string]int{}}
	for _, name := range names {
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, fmt.Errorf("read a note: %w", err)
		}
		x.add(path.Join(prefix, name), strings.ToValidUTF8(string(text), "\uFFFD"))
	}
	total := 0
	for _, s := range x.sections {
		total += s.length
		for word := range s.words {
			x.holding[word]++
		}
	}
	x.average = float64(total) / float64(max(len(x.sections), 1))
	return x, nil
}

var (
	itemStart = regexp.MustCompile(`^(?:\||[-*] |\d+\. )`)
	tableRule = regexp.MustCompile(`^\|[-| :]+\|$`)
)

// add cuts a note into sections.
func (x *Index) add(name, text string) {
	note := strings.TrimSuffix(path.Base(name), ".md") // until a heading says better
	current := section{title: note, path: name}
	open := false // whether the last line was part of a paragraph
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		title, isTitle := strings.CutPrefix(line, "# ")
		heading, isHeading := strings.CutPrefix(line, "## ")
		switch {
		case isTitle && i == 0:
			note, current.title = title, title
		case isHeading:
			x.keep(current)
			current = section{title: note + ": " + heading, path: name}
			open = false
		case line == "" || tableRule.MatchString(line):
			open = false
		default:
			current.extend(i+1, line, open && !itemStart.MatchString(line))
			open = true
		}
	}
	x.keep(current)
}

// keep adds a section to the index if it holds any text.
func (x *Index) keep(s section) {
	if len(s.paragraphs) > 0 {
		s.count()
		x.sections = append(x.sections, s)
	}
}

// extend adds a line to the last paragraph, or as a new one.
func (s *section) extend(line int, text string, same bool) {
	if same {
		s.paragraphs[len(s.paragraphs)-1].text += " " + text
		return
	}
	s.paragraphs = append(s.paragraphs, paragraph{line, text})
}

// count fills in the words of a section.
func (s *section) count() {
	s.words = map[string]int{}
	tally := func(text string, weight int) {
		for _, word := range words(text) {
			s.words[word] += weight
			s.length += weight
		}
	}
	tally(s.title, titleWeight)
	for _, p := range s.paragraphs {
		tally(p.text, 1)
	}
}
