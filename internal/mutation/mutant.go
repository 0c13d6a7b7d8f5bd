package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// A mutant is one change of one file: a range of its bytes, and what stands
// there instead. Lines keep their numbers, so that a survivor's place is that
// of the code as it is.
type mutant struct {
	kind        string // what was done, in a word
	file        string // absolute
	line        int
	start, end  int // the range, in bytes
	replacement string
	before      string // the code that the report shows
	after       string // what the report shows instead, or ""
}

// apply returns the source with the change.
func (m mutant) apply(src []byte) []byte {
	out := make([]byte, 0, len(src)+len(m.replacement))
	out = append(out, src[:m.start]...)
	out = append(out, m.replacement...)
	return append(out, src[m.end:]...)
}

// change describes the mutation in one line.
func (m mutant) change() string {
	if m.after == "" {
		return m.kind + ": " + excerpt(m.before)
	}
	return m.kind + ": " + excerpt(m.before) + "  →  " + excerpt(m.after)
}

// excerpt is the first line of code, cut to a width that fits a report.
func excerpt(code string) string {
	const width = 72
	first, _, more := strings.Cut(code, "\n")
	if runes := []rune(first); len(runes) > width {
		first, more = string(runes[:width]), true
	}
	if more {
		first += " …"
	}
	return first
}

// mutantsOf finds every mutant of a package, in the order of the code.
func mutantsOf(p pkg) ([]mutant, error) {
	var all []mutant
	for _, name := range p.GoFiles {
		path := filepath.Join(p.Dir, name)
		src, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		found, err := mutantsIn(path, src)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// mutantsIn finds the mutants of one file.
func mutantsIn(path string, src []byte) ([]mutant, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	// The tests of a generator cover what it generates.
	if ast.IsGenerated(file) {
		return nil, nil
	}
	f := finder{path: path, src: src, at: fset.File(file.FileStart)}
	ast.Inspect(file, f.visit)
	return f.found, nil
}

// shuffle puts mutants in an order that depends on the seed and the package
// alone. A sample is its beginning, so that a larger one contains a smaller.
func shuffle(mutants []mutant, seed uint64, importPath string) {
	// The import path enters the seed, or packages of the same size would be
	// sampled at the same places.
	h := fnv.New64a()
	_, _ = h.Write([]byte(importPath))
	rand.New(rand.NewPCG(seed, h.Sum64())).Shuffle(len(mutants), func(i, j int) {
		mutants[i], mutants[j] = mutants[j], mutants[i]
	})
}
