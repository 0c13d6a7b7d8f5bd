package contain

import (
	"encoding/json"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agentd/agentd/schema/internal/format"
	"github.com/agentd/agentd/schema/internal/ir"
	"github.com/agentd/agentd/schema/internal/jsontree"
	"github.com/agentd/agentd/schema/internal/regular"
)

// formatsClash reports whether a format is required and ruled out at once. A URI
// is also a URI reference.
func (st *state) formatsClash() bool {
	for _, a := range st.texts {
		for _, b := range st.texts {
			if a.op == opFormat && b.op == opNoFormat && (a.format == b.format ||
				a.format == format.URI && b.format == format.URIReference) {
				return true
			}
		}
	}
	return false
}

// checkString looks for a string: first among words that read well, then by
// automata, which are exact for patterns and lengths. Formats are not all
// regular: the automata for a format hold either more than its strings or
// fewer. With more, finding nothing is a proof, but a string that is found need
// not have the format. Then a closer automaton is tried, and last one that holds
// fewer, whose strings always have the format.
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
	best := unsat()
	for _, how := range format.Fits() {
		r := p.findString(st, how)
		if r.status != statusMaybe && (r.status == statusSat || how != format.Narrow) {
			return r
		}
		if best = worse(best, r); r.reason != ReasonFormat {
			break
		}
	}
	return best
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

// readsAll reports whether a word has the length and satisfies all patterns and
// formats of a state.
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

// words returns strings to try before any automaton: they make better witnesses
// than what a search finds first, and they are right most of the time.
func (st *state) words() []string {
	for _, t := range st.texts {
		if t.op == opFormat {
			return format.Samples(t.format, st.length.low)
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

// plainString finds a string where nothing but its length and excluded strings
// matters. No automaton is needed: strings of that length differ in their last
// character, of which there are more than exclusions.
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
		// Control characters and the soft hyphen read badly, so that the walk
		// goes from ASCII to U+00A1.
		if r == 0x7F {
			r = 0xA1
		}
		if result := p.text(st, prefix+string(r)); result.status == statusSat {
			return result
		}
	}
	return p.unknown(ReasonSteps)
}

// findString decides by automata, with formats taken as closely as how says. A
// length beyond 20,000 is lowered to that, because the search visits every
// length: the query then allows more strings, so that finding none is still a
// proof, and one that is found is tested again.
func (p *prover) findString(st *state, how format.Fit) result {
	q := regular.Query{MinLength: st.length.low, MaxLength: st.length.high}
	if q.MaxLength == ir.Unbounded {
		q.MaxLength = -1
	}
	const longest = 20_000
	if q.MinLength > longest {
		q.MinLength = longest // more strings; one that is found is tested again
	}
	for _, set := range st.out {
		for _, id := range set.ids {
			if v := p.values[id]; v.Kind == jsontree.String {
				q.Excluded = append(q.Excluded, v.Text)
			}
		}
	}
	return p.findBy(st, q, st.texts, how)
}

// findBy adds the terms to a query one after the other, and then runs it. A
// format may stand for several languages that a string must all be in. To lack
// the format is then to be outside of any one of them, and each is tried.
func (p *prover) findBy(st *state, q regular.Query, texts []*term, how format.Fit) result {
	if len(texts) == 0 {
		return p.runQuery(st, q, how)
	}
	t := texts[0]
	// To miss a pattern is to be outside of its language.
	complement := t.op == opMiss || t.op == opNoFormat
	languages, ok := p.languagesOf(t, how)
	if !ok {
		return result{status: statusMaybe, reason: ReasonPattern, at: t.origin, placed: true}
	}
	// Several queries grow from this one; none may write into the terms of
	// another.
	q.Terms = slices.Clip(q.Terms)
	if !complement {
		for _, l := range languages {
			q.Terms = append(q.Terms, regular.Term{Language: l})
		}
		return p.findBy(st, q, texts[1:], how)
	}
	best := unsat()
	for _, l := range languages {
		one := q
		one.Terms = append(one.Terms, regular.Term{Language: l, Complement: true})
		r := p.findBy(st, one, texts[1:], how)
		if r.status == statusSat {
			return r
		}
		best = worse(best, r)
	}
	return best
}

// runQuery runs a query with a share of the steps that are left. One step of
// reasoning is worth sixteen of an automaton, which are that much cheaper.
func (p *prover) runQuery(st *state, q regular.Query, how format.Fit) result {
	budget := regular.Budget{Done: p.ctx.Done(), Steps: min(p.budget.Strings, (p.steps-p.floor)*stringStepsPerStep)}
	before := budget.Steps
	word, answer := q.Find(&budget)
	p.spend((before - budget.Steps) / stringStepsPerStep)
	stuck := st.texts[len(st.texts)-1].origin
	switch {
	case answer == regular.Empty && how != format.Narrow:
		return unsat()
	case answer == regular.Found && st.readsAll(word):
		return p.text(st, word)
	case answer == regular.Unknown:
		return result{status: statusMaybe, reason: ReasonPattern, at: stuck, placed: true}
	}
	if answer == regular.Found {
		if t := st.contradicted(word, how); t != nil {
			p.fault("two automata disagree", "term", t.source(), "string", word, "schema", t.origin.pointer)
			return result{status: statusMaybe, reason: ReasonInternal, at: t.origin, placed: true}
		}
	}
	if r := p.unknown(ReasonFormat); r.reason != ReasonFormat || q.MinLength == st.length.low {
		r.at, r.placed = stuck, true
		return r
	}
	return p.unknown(ReasonWitness)
}

// contradicted returns the term that a string does not satisfy although its
// languages say so, or nil if there is none. Patterns mean the same to both
// engines, formats only in the narrow fit.
func (st *state) contradicted(word string, how format.Fit) *term {
	for _, t := range st.texts {
		if (t.pattern != nil || how == format.Narrow) && !t.reads(word) {
			return t
		}
	}
	return nil
}

// source is a pattern or format as written.
func (t *term) source() string {
	if t.pattern != nil {
		return t.pattern.Source
	}
	return string(t.format)
}

// languagesOf returns the automata of a pattern or format, which together
// hold its strings.
func (p *prover) languagesOf(t *term, how format.Fit) ([]*regular.Language, bool) {
	if t.pattern != nil {
		l := p.automaton(t.pattern.RE2)
		return []*regular.Language{l}, l != nil
	}
	if t.op == opNoFormat {
		how = how.Opposite()
	}
	var all []*regular.Language
	for _, source := range format.Languages(t.format, how) {
		l := p.automaton(source)
		if l == nil {
			return nil, false
		}
		all = append(all, l)
	}
	return all, true
}

// automaton returns the automaton of an expression, or nil if it would be too
// large. Automata are kept for the whole question: they grow as searches walk
// them, and the same pattern is asked about again and again.
func (p *prover) automaton(source string) *regular.Language {
	l, known := p.languages[source]
	if known {
		return l
	}
	if tree, err := syntax.Parse(source, syntax.Perl); err == nil {
		if made, err := regular.Search(tree); err == nil {
			l = made
		}
	}
	if p.languages == nil {
		p.languages = map[string]*regular.Language{}
	}
	p.languages[source] = l
	return l
}
