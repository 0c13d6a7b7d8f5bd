package schema

import (
	"encoding/json"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/agentd/agentd/schema/internal/regular"
)

// checkString looks for a string: first among words that read well, then by
// automata. A format whose language is approximated counts with more strings
// than it has where absence is to be shown, and with fewer where presence is.
func (p *prover) checkString(st *state) result {
	if st.formatsClash() {
		return unsat()
	}
	for _, word := range st.words() {
		if st.readsAll(word) {
			if r := p.text(st, word); r.status == statusSat {
				return r
			}
		}
	}
	if len(st.texts) == 0 {
		return p.plainString(st)
	}
	r := p.findString(st, true)
	if r.status != statusMaybe || r.reason != ReasonFormat {
		return r
	}
	if under := p.findString(st, false); under.status == statusSat {
		return under
	}
	return r
}

// text returns a string as a value, unless it is excluded or too long.
func (p *prover) text(st *state, word string) result {
	if len(word) > p.budget.Witness {
		return p.unknown(ReasonWitness)
	}
	raw := quoteJSON(word)
	if p.excluded(st, raw) {
		return unsat()
	}
	return satisfied(raw)
}

// quoteJSON writes a string as JSON without escaping more than it must.
func quoteJSON(s string) []byte {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return []byte(`""`) // a string always encodes
	}
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}

func (st *state) readsAll(word string) bool {
	if n := utf8.RuneCountInString(word); n < st.length.low || n > st.length.high {
		return false
	}
	for _, t := range st.texts {
		if !t.reads(word) {
			return false
		}
	}
	return true
}

// words are strings to try first.
func (st *state) words() []string {
	for _, t := range st.texts {
		if t.op == opFormat {
			return formatSamples(t.format)
		}
	}
	const word = "text"
	if most := st.length.high; most < len(word) {
		return []string{word[:most]}
	}
	if least := st.length.low; least > len(word) && least <= 64 {
		return []string{strings.Repeat("text ", least/5+1)[:least-1] + "t"}
	}
	return []string{word, "a", "1"}
}

// plainString finds a string that only its length and excluded strings bound.
func (p *prover) plainString(st *state) result {
	least := st.length.low
	if least > p.budget.Witness {
		return p.unknown(ReasonWitness)
	}
	if st.length.high == 0 {
		return p.text(st, "")
	}
	// The last character varies: there are more of them than exclusions.
	prefix := strings.Repeat("a", max(0, least-1))
	for r := 'a'; r < 0xD800 && p.spend(1); r++ {
		if r == 0x7F {
			r = 0xA1
		}
		if result := p.text(st, prefix+string(r)); result.status == statusSat {
			return result
		}
	}
	return p.unknown(ReasonSteps)
}

// findString decides by automata. With over, formats hold at least their
// strings; without it, at most.
func (p *prover) findString(st *state, over bool) result {
	q := regular.Query{MinLength: st.length.low, MaxLength: st.length.high}
	if q.MaxLength == unbounded {
		q.MaxLength = -1
	}
	const longest = 20_000
	if q.MinLength > longest {
		q.MinLength = longest // more strings; one that is found is tested again
	}
	var stuck place
	for _, t := range st.texts {
		stuck = t.origin
		l, ok := p.language(t, over)
		if !ok {
			return result{status: statusMaybe, reason: ReasonPattern, at: stuck}
		}
		q.Terms = append(q.Terms, regular.Term{Language: l, Complement: t.op == opMiss || t.op == opNoFormat})
	}
	for _, set := range st.out {
		for _, id := range set.ids {
			if v := p.values[id]; v.kind == kindString {
				q.Excluded = append(q.Excluded, v.text)
			}
		}
	}
	budget := regular.Budget{Done: p.ctx.Done(), Steps: min(p.budget.Strings, p.steps*stringStepsPerStep)}
	before := budget.Steps
	word, answer := q.Find(&budget)
	p.spend((before - budget.Steps) / stringStepsPerStep)
	switch {
	case answer == regular.Empty && over:
		return unsat()
	case answer == regular.Found && st.readsAll(word):
		return p.text(st, word)
	case answer == regular.Unknown:
		return result{status: statusMaybe, reason: ReasonPattern, at: stuck}
	}
	if r := p.unknown(ReasonFormat); r.reason != ReasonFormat || q.MinLength == st.length.low {
		r.at = stuck
		return r
	}
	return p.unknown(ReasonWitness)
}

// language returns the automaton of a pattern or format.
func (p *prover) language(t *term, over bool) (*regular.Language, bool) {
	if t.pattern != nil {
		return p.automaton(t.pattern.re2, t.pattern.tree)
	}
	if t.op == opNoFormat {
		over = !over
	}
	source := formatLanguage(t.format, over)
	tree, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return nil, false
	}
	return p.automaton(source, tree)
}

func (p *prover) automaton(source string, tree *syntax.Regexp) (*regular.Language, bool) {
	l, known := p.languages[source]
	if !known {
		l, _ = regular.Search(tree) // nil where it is unsupported
		p.languages[source] = l
	}
	return l, l != nil
}
