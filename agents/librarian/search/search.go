package search

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
)

// The usual parameters of BM25: how soon repetition stops to count, and how
// much long sections are marked down.
const (
	bm25K1 = 1.2
	bm25B  = 0.75
)

// maxExcerpt bounds an excerpt, in code points.
const maxExcerpt = 280

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

// Search returns at most limit sections that hold a word of the query, best
// first; equals are ordered by file and line. No fit is an empty list.
func (x *Index) Search(query string, limit int) []Result {
	asked := words(query)
	slices.Sort(asked)
	asked = slices.Compact(asked)
	results := []Result{}
	for _, s := range x.sections {
		score := 0.0
		for _, word := range asked {
			score += x.score(&s, word)
		}
		if score == 0 {
			continue
		}
		best := x.bestParagraph(&s, asked)
		results = append(results, Result{Title: s.title, Path: s.path, Line: best.line, Excerpt: excerpt(best.text),
			Score: max(math.Round(score*1000)/1000, 0.001)})
	}
	slices.SortFunc(results, func(a, b Result) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line))
	})
	return results[:min(len(results), max(limit, 0))]
}

// score is what a word adds to the BM25 score of a section.
func (x *Index) score(s *section, word string) float64 {
	count := float64(s.words[word])
	norm := bm25K1 * (1 - bm25B + bm25B*float64(s.length)/x.average)
	return x.rarity(word) * count * (bm25K1 + 1) / (count + norm)
}

// rarity is the inverse document frequency of a word, never negative.
func (x *Index) rarity(word string) float64 {
	n, holding := float64(len(x.sections)), float64(x.holding[word])
	return math.Log(1 + (n-holding+0.5)/(holding+0.5))
}

// bestParagraph returns the paragraph with the rarest words of the query; the
// first one if only the title holds any.
func (x *Index) bestParagraph(s *section, asked []string) paragraph {
	best, bestScore := s.paragraphs[0], 0.0
	for _, p := range s.paragraphs {
		held := map[string]bool{}
		for _, word := range words(p.text) {
			held[word] = true
		}
		score := 0.0
		for _, word := range asked {
			if held[word] {
				score += x.rarity(word)
			}
		}
		if score > bestScore {
			best, bestScore = p, score
		}
	}
	return best
}

// words cuts text into lower-case runs of letters and digits, without the
// plural s, so that "keys" is "key".
func words(text string) []string {
	found := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for i, word := range found {
		if len(word) > 3 && strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss") {
			found[i] = word[:len(word)-1]
		}
	}
	return found
}

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
