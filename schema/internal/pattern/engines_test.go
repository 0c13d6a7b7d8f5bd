package pattern

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"regexp/syntax"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/schema/internal/regular"
)

// engines are all ways in which this module decides one pattern, and Go's own.
type engines struct {
	re2      string
	program  *program  // of the pattern as it runs
	dfa      *dfa      // of the pattern as it runs; nil if too large
	parallel *parallel // the same
	whole    *parallel // of the pattern before trimSearch
	lazy     *lazy     // of the pattern as it runs, with a cache that is full soon
	pattern  *Pattern  // as a schema runs it
	language *regular.Language
	regexp   *regexp.Regexp
	effort   effort
}

// effort is what the automata of patterns cost to build and to keep, in counts
// that are the same on every machine.
type effort struct {
	steps, states, classes int // of the complete automaton
	links, groups, words   int // of the parallel one
}

func (e *effort) add(o effort) {
	e.steps, e.states, e.classes = e.steps+o.steps, e.states+o.states, e.classes+o.classes
	e.links, e.groups, e.words = e.links+o.links, e.groups+o.groups, e.words+o.words
}

func newEngines(t testing.TB, source string) *engines {
	t.Helper()
	p, refused := Compile(source, budget())
	if refused != nil {
		t.Fatalf("%q: refused: %+v", source, *refused)
	}
	e := &engines{pattern: p, re2: p.RE2, regexp: regexp.MustCompile(p.RE2)}
	trimmed, err := newProgram(trimSearch(p.tree))
	if err != nil {
		t.Fatalf("%q: %v", source, err)
	}
	e.program = trimmed
	whole, err := newProgram(p.tree)
	if err != nil {
		t.Fatalf("%q: %v", source, err)
	}
	const ample = 1 << 24
	steps, links, more := ample, ample, ample
	e.dfa, e.parallel, e.whole = newDFA(trimmed, &steps), newParallel(trimmed, &links), newParallel(whole, &more)
	if e.parallel != nil {
		small := (leastStates + 3) * (&lazy{parallel: e.parallel}).stateSize()
		e.lazy = newLazy(e.parallel, &small)
	}
	e.effort = effort{steps: ample - steps, links: ample - links, classes: trimmed.classes + len(trimmed.starts)}
	if e.dfa != nil {
		e.effort.states = len(e.dfa.final)
	}
	if e.parallel != nil {
		e.effort.groups = len(e.parallel.links[0].groups) + len(e.parallel.links[1].groups)
		e.effort.words = e.parallel.links[0].work() + e.parallel.links[1].work()
	}
	if e.language, err = regular.Search(p.tree); err != nil && !errors.Is(err, regular.ErrUnsupported) {
		t.Fatalf("%q: %v", source, err)
	}
	return e
}

// agree fails the test if an engine does not match all of some texts, or with
// want false, if it matches one.
func (e *engines) agree(t testing.TB, source string, texts []string, want bool) {
	t.Helper()
	for _, text := range texts {
		verdicts := map[string]bool{"regexp": e.regexp.MatchString(text), "Match": e.pattern.Match([]byte(text))}
		if e.dfa != nil {
			verdicts["dfa"] = e.dfa.match([]byte(text))
		}
		if e.parallel != nil {
			verdicts["parallel"] = e.parallel.match([]byte(text))
		}
		if e.lazy != nil {
			verdicts["lazy"] = e.lazy.match([]byte(text))
			verdicts["lazy, again"] = e.lazy.match([]byte(text))
		}
		if e.whole != nil {
			verdicts["parallel, not trimmed"] = e.whole.match([]byte(text))
		}
		for name, got := range verdicts {
			if got != want {
				t.Errorf("%q (RE2 %q) on %q: %s says %v, want %v", source, e.re2, text, name, got, want)
			}
		}
	}
	if e.language == nil || len(texts) == 0 {
		return
	}
	// The prover's automata decide about sets: no text is outside of the
	// language if want is true, and none is in it otherwise.
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = regexp.QuoteMeta(text)
	}
	tree, err := syntax.Parse(`^(?:`+strings.Join(quoted, "|")+`)$`, syntax.Perl)
	if err != nil {
		t.Fatal(err)
	}
	all, err := regular.Search(tree)
	if err != nil {
		t.Fatal(err)
	}
	q := regular.Query{MaxLength: -1, Terms: []regular.Term{{Language: all}, {Language: e.language, Complement: want}}}
	if found, answer := q.Find(&regular.Budget{Steps: 1 << 24}); answer != regular.Empty {
		t.Errorf("%q (RE2 %q) on %q: the language says %v, want %v", source, e.re2, found, !want, want)
	}
}

// TestEnginesAgainstV8 holds every engine to what V8 says with the flag u.
// testdata/record.mjs says how the verdicts were recorded.
func TestEnginesAgainstV8(t *testing.T) {
	data, err := os.ReadFile("testdata/v8.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	patterns, complete, strings := 0, 0, 0
	var total effort
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); patterns++ {
		var v struct {
			Pattern     string
			Match, Miss []string
		}
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		e := newEngines(t, v.Pattern)
		total.add(e.effort)
		if e.dfa != nil {
			complete++
		}
		if e.dfa == nil && e.parallel == nil {
			t.Errorf("%q: no automaton", v.Pattern)
		}
		e.agree(t, v.Pattern, v.Match, true)
		e.agree(t, v.Pattern, v.Miss, false)
		strings += len(v.Match) + len(v.Miss)
		if t.Failed() {
			t.FailNow() // one pattern is enough to see
		}
	}
	if patterns < 1500 || strings < 30_000 || complete < 1400 {
		t.Errorf("%d patterns, %d of them complete automata, %d strings: the file is cut short", patterns, complete, strings)
	}
	// What a peer's patterns cost to load is bounded in these steps. An automaton
	// that is right but larger than it was shows here and nowhere else.
	if want := (effort{steps: 11_362_093, states: 25_679, classes: 479_634, links: 138_296, groups: 3_913, words: 38_950}); total != want {
		t.Errorf("the automata of all patterns took %+v, not %+v", total, want)
	}
}

// folded are characters with two cases or more, some of which fold into ASCII
// or out of it.
func folded() []string {
	return []string{"aA", "xX", "zZ", "kK\u212A", "sS\u017F", "\u00E5\u00C5\u212B", "\u00DF\u1E9E", "\u03C3\u03C2\u03A3", "iI\u0130\u0131", "\U00010400\U00010428"}
}

func drawCharacter(t *rapid.T) rune {
	if rapid.IntRange(0, 2).Draw(t, "kind") > 0 {
		return rapid.SampledFrom([]rune(strings.Join(folded(), ""))).Draw(t, "cased")
	}
	return rapid.SampledFrom([]rune("b90_- .\n\r\u2028\u00A0\uFEFF@[`{/:\u65E5\u007F\u0080\uD7FF\uE000\uFFFD\U0001F600\U0010FFFF\x00")).Draw(t, "other")
}

func escapePattern(r rune) string {
	if strings.ContainsRune(`\^$.*+?()[]{}|/-`, r) {
		return `\` + string(r)
	}
	return string(r)
}

func drawClass(t *rapid.T) string {
	var b strings.Builder
	b.WriteString(rapid.SampledFrom([]string{"[", "[", "[^"}).Draw(t, "open"))
	if rapid.Bool().Draw(t, "cases") {
		b.WriteString(rapid.SampledFrom(folded()).Draw(t, "cases of"))
	}
	for range rapid.IntRange(0, 2).Draw(t, "items") {
		switch rapid.IntRange(0, 3).Draw(t, "item") {
		case 0, 1:
			b.WriteString(escapePattern(drawCharacter(t)))
		case 2:
			low, high := drawCharacter(t), drawCharacter(t)
			b.WriteString(escapePattern(min(low, high)) + "-" + escapePattern(max(low, high)))
		default:
			b.WriteString(rapid.SampledFrom([]string{`\d`, `\D`, `\w`, `\W`, `\s`, `\S`, `\p{Lu}`, `\P{Greek}`}).Draw(t, "set"))
		}
	}
	return b.String() + "]"
}

// drawPattern draws a pattern of ECMA-262 of the kind that engines get wrong.
func drawPattern(t *rapid.T, depth int) string {
	most := 9
	if depth <= 0 {
		most = 5
	}
	switch rapid.IntRange(0, most).Draw(t, "kind") {
	case 0, 1:
		return escapePattern(drawCharacter(t))
	case 2, 3:
		return drawClass(t)
	case 4:
		return rapid.SampledFrom([]string{`\b`, `\B`, "^", "$"}).Draw(t, "border")
	case 5:
		return rapid.SampledFrom([]string{".", `\w`, `\W`, `\s`, `\p{L}`, ""}).Draw(t, "set")
	case 6:
		return drawPattern(t, depth-1) + drawPattern(t, depth-1)
	case 7:
		return "(?:" + drawPattern(t, depth-1) + "|" + drawPattern(t, depth-1) + ")"
	case 8:
		return "^(?:" + drawPattern(t, depth-1) + ")$"
	default:
		return "(?:" + drawPattern(t, depth-1) + ")" +
			rapid.SampledFrom([]string{"*", "+", "?", "{2}", "{0,3}", "{1,}", "{0}", "{2,70}", "+?"}).Draw(t, "quantifier")
	}
}

// TestEnginesAgree holds the engines against one another.
func TestEnginesAgree(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		source := drawPattern(r, 4)
		if _, refused := Compile(source, budget()); refused != nil {
			r.Skip(refused.Message)
		}
		e := newEngines(t, source)
		near := []rune(source)
		texts := map[bool][]string{}
		for range 20 {
			var text []rune
			for range rapid.IntRange(0, 6).Draw(r, "length") {
				if len(near) > 0 && rapid.Bool().Draw(r, "near") {
					c := rapid.SampledFrom(near).Draw(r, "character")
					text = append(text, rapid.SampledFrom([]rune{c, unicode.SimpleFold(c), c + 1}).Draw(r, "variant"))
				} else {
					text = append(text, drawCharacter(r))
				}
			}
			if s := string(text); utf8.ValidString(s) {
				want := e.regexp.MatchString(s)
				texts[want] = append(texts[want], s)
			}
		}
		e.agree(t, source, texts[true], true)
		e.agree(t, source, texts[false], false)
		if t.Failed() {
			r.FailNow()
		}
	})
}

// TestParallelOnLongPatterns crosses the borders of words in sets of positions,
// which short patterns never do.
func TestParallelOnLongPatterns(t *testing.T) {
	for _, source := range []string{
		`^[ab]*a[ab]{62}$`, `^[ab]*a[ab]{63}$`, `^[ab]*a[ab]{64}$`, `[ab]*a[ab]{130}$`, `^(?:a{0,40}b{0,40}){0,3}$`, `a.{60,70}b`,
		`\ba{64}\b`, `\Ba{63}\B`, `(?:a|ab){70}`, `^(?:ab?){65,}$`, `b{129}|a{127}b`, `(?:\bab{62}\b ?){2}`,
	} {
		e := newEngines(t, source)
		if e.parallel == nil {
			t.Errorf("%q has no parallel automaton", source)
			continue
		}
		rapid.Check(t, func(r *rapid.T) {
			text := strings.Repeat("a", rapid.IntRange(0, 140).Draw(r, "as"))
			for range rapid.IntRange(0, 3).Draw(r, "runs") {
				text += rapid.SampledFrom([]string{"b", " ", "-", "ba"}).Draw(r, "between")
				text += strings.Repeat(rapid.SampledFrom([]string{"a", "b", "ab"}).Draw(r, "unit"), rapid.IntRange(0, 130).Draw(r, "n"))
			}
			want := e.regexp.MatchString(text)
			if e.parallel.match([]byte(text)) != want || e.whole != nil && e.whole.match([]byte(text)) != want {
				t.Fatalf("%q on %q: want %v", source, text, want)
			}
			if e.lazy.match([]byte(text)) != want || e.pattern.Match([]byte(text)) != want {
				t.Fatalf("%q on %q: the cache does not say %v", source, text, want)
			}
			if e.dfa != nil && e.dfa.match([]byte(text)) != want {
				t.Fatalf("%q on %q: the complete automaton does not say %v", source, text, want)
			}
		})
	}
}

// TestTrimSearch pins what is left of a pattern for a search.
func TestTrimSearch(t *testing.T) {
	for source, want := range map[string]string{
		`.{0,1000}x.{0,1000}`: `x`,
		`a*`:                  ``,
		`a*b+`:                `b`,
		`(?:a?b)+c*`:          `b`,
		`x{3,9}`:              `x{3,3}`,
		`(?:x?y{2,5}z?){1,4}`: `y{2,2}`,
		`(?:ab*|d+c)e*`:       `a|dc`,
		`^a*b`:                `^a*b`,
		`a*$`:                 `$`,
		`(?:a|)b`:             `b`,
		`\ba?`:                `\b`,
		`a?\b`:                `\b`,
	} {
		tree, err := syntax.Parse(source, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		expected, err := syntax.Parse(want, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		if got := trimSearch(tree).Simplify().String(); got != expected.Simplify().String() {
			t.Errorf("%s: got %s, want %s", source, got, expected.Simplify())
		}
	}
}
