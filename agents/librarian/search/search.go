package search

import (
	"cmp"
	"fmt"
	"io/fs"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// An Index holds the sections of some notes. It never changes, and is safe for
// concurrent use.
type Index struct{ sections []section }

// A section is what stands under one heading: the unit that is ranked.
type section struct {
	title      string // of the note, and of the section if it has its own
	path       string
	paragraphs []paragraph
	text       string // of all paragraphs
}

// A paragraph is a run of lines without a blank one. An item of a list and a
// row of a table is a paragraph of its own.
type paragraph struct {
	line int // of its first line, from 1
	text string
}

// A Result is a section that fits a query.
type Result struct {
	// Title is that of the note, followed by that of the section.
	Title string `json:"title"`
	// Path is the note's file.
	Path string `json:"path"`
	// Line is where the excerpt begins, from 1.
	Line int `json:"line"`
	// Excerpt is the paragraph that fits best, cut to 280 code points.
	Excerpt string `json:"excerpt"`
	// Score is positive, and comparable among the results of one query.
	Score float64 `json:"score"`
}

// Load indexes the files *.md of fsys. The paths of results begin with prefix,
// the folder's name as the reader knows it.
func Load(fsys fs.FS, prefix string) (*Index, error) {
	names, err := fs.Glob(fsys, "*.md")
	if err != nil {
		return nil, fmt.Errorf("list the notes: %w", err)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("there are no notes (*.md) in %s", prefix)
	}
	x := &Index{}
	for _, name := range names {
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, fmt.Errorf("read a note: %w", err)
		}
		x.add(path.Join(prefix, name), strings.ToValidUTF8(string(text), "\uFFFD"))
	}
	return x, nil
}

var (
	itemStart = regexp.MustCompile(`^(?:\||[-*] |\d+\. )`)
	tableRule = regexp.MustCompile(`^\|[-| :]+\|$`)
)

// add cuts a note into sections. One without text is left out: it would have
// nothing to show.
func (x *Index) add(name, text string) {
	note := strings.TrimSuffix(path.Base(name), ".md") // until a heading names it
	current := section{title: note, path: name}
	keep := func() {
		if current.text != "" {
			x.sections = append(x.sections, current)
		}
	}
	open := false // whether the last line was part of a paragraph
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		title, isTitle := strings.CutPrefix(line, "# ")
		heading, isHeading := strings.CutPrefix(line, "## ")
		switch {
		case isTitle && i == 0:
			note, current.title = title, title
		case isHeading:
			keep()
			current, open = section{title: note + ": " + heading, path: name}, false
		case line == "" || tableRule.MatchString(line):
			open = false
		case open && !itemStart.MatchString(line):
			current.paragraphs[len(current.paragraphs)-1].text += " " + line
			current.text += "\n" + line
		default:
			current.paragraphs = append(current.paragraphs, paragraph{i + 1, line})
			current.text += "\n" + line
			open = true
		}
	}
	keep()
}

// Search returns at most limit sections that share a word with the query, best
// first; equals are ordered by file and line. No match is an empty list.
func (x *Index) Search(query string, limit int) []Result {
	weights := x.weights(words(query))
	weigh := func(text string) (score float64) {
		for _, word := range words(text) {
			score += weights[word]
		}
		return score
	}
	results := []Result{}
	for _, s := range x.sections {
		best, bestScore := s.paragraphs[0], 0.0 // the first one if only the title fits
		for _, p := range s.paragraphs {
			if score := weigh(p.text); score > bestScore {
				best, bestScore = p, score
			}
		}
		if score := 2*weigh(s.title) + weigh(s.text); score > 0 {
			results = append(results, Result{s.title, s.path, best.line, excerpt(best.text), math.Round(score*1000) / 1000})
		}
	}
	slices.SortFunc(results, func(a, b Result) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line))
	})
	return results[:min(len(results), max(limit, 0))]
}

// weights is the inverse document frequency of each word of a query. It is
// positive even for a word that every section holds.
func (x *Index) weights(query []string) map[string]float64 {
	weights := map[string]float64{}
	for _, word := range query {
		holding := 0
		for _, s := range x.sections {
			if slices.Contains(words(s.title+"\n"+s.text), word) {
				holding++
			}
		}
		weights[word] = math.Log(1 + float64(len(x.sections))/float64(1+holding))
	}
	return weights
}

// words are the different runs of letters and digits in text, in lower case and
// without the plural s, so that "keys" is "key". Their order is fixed, so that
// sums over them are.
func words(text string) []string {
	found := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for i, word := range found {
		if len(word) > 3 && !strings.HasSuffix(word, "ss") {
			found[i] = strings.TrimSuffix(word, "s")
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// maxExcerpt bounds an excerpt, in code points.
const maxExcerpt = 280

// excerpt cuts text to maxExcerpt code points, between words if it can.
func excerpt(text string) string {
	runes := []rune(text)
	if len(runes) <= maxExcerpt {
		return text
	}
	cut := string(runes[:maxExcerpt-1])
	if i := strings.LastIndexByte(cut, ' '); i > 0 {
		cut = cut[:i]
	}
	return cut + "…"
}
