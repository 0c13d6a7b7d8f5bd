package contain

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/internal/ir"
	"github.com/agentd/agentd/schema/internal/jsonptr"
)

// Finding is one difference between two schemas.
type Finding struct {
	Rule Rule `json:"rule"`
	// Path is where the values that it concerns stand in a document, as an
	// RFC 6901 pointer in which "*" stands for any element or unnamed member.
	Path string `json:"path"`
	// A and B are where the difference stands in the two schemas, as RFC 6901
	// pointers: at the keyword, or at the schema that lacks it.
	A string `json:"a"`
	B string `json:"b"`
	// Direction is what the difference does by itself.
	Direction Direction `json:"direction"`
	// Breaking says that some value is accepted by the first schema and
	// rejected by the second because of this difference, or that this could
	// not be ruled out.
	Breaking bool `json:"breaking"`
	// Message describes the difference, as in "maximum 10, now maximum 5".
	Message string `json:"message"`
	// Witness is such a value, checked by both validators. It is nil where
	// the difference breaks nothing or no value was found.
	Witness json.RawMessage `json:"witness,omitempty"`
}

// Explain lists the differences between two schemas, for the question whether
// every value that a accepts is accepted by b: no finding is breaking if
// [IsSubschema] answers Proven, and at least one is otherwise. Schemas that
// differ only in place, order or annotations have no findings.
//
// The findings are ordered by Path, Rule, A and B, and are the same for the
// same schemas. A difference inside a definition is listed for at most eight
// of the places that refer to it.
func Explain(a, b *schema.Schema) []Finding {
	return ExplainWithin(context.Background(), a, b, Budget{})
}

// ExplainWithin is [Explain] within a budget: of steps, one for the answer
// about the whole and one for all findings; of time, where it is bounded, one in all.
func ExplainWithin(ctx context.Context, a, b *schema.Schema, budget Budget) []Finding {
	return explainWithin(ctx, a, b, budget, false)
}

// ExplainOutput is [Explain] for what is sent back, such as the response of a function:
// those who read it break where it can be what it could not be before. It speaks from the
// old schema to the new one as Explain does, so that a new value of an enum is widened,
// but a finding is breaking if some value is accepted by the new schema and rejected by
// the old, and the witness is such a value.
func ExplainOutput(old, new *schema.Schema) []Finding {
	return ExplainOutputWithin(context.Background(), old, new, Budget{})
}

// ExplainOutputWithin is [ExplainOutput] within a budget, as [ExplainWithin] is.
func ExplainOutputWithin(ctx context.Context, old, new *schema.Schema, budget Budget) []Finding {
	return explainWithin(ctx, new, old, budget, true)
}

// explainWithin asks whether a is contained in b. backward says that b is the old schema:
// the findings then read from b to a.
func explainWithin(ctx context.Context, a, b *schema.Schema, budget Budget, backward bool) []Finding {
	budget = budget.orDefault()
	ctx, cancel := budget.bounded(ctx)
	defer cancel()
	p := newProver(ctx, budget, a, b)
	if p.spent == "" && p.roots[0] == p.roots[1] {
		return nil
	}
	p.steps = 2 * budget.Steps // once for the whole, once for the findings
	whole := p.answer(budget.Steps, func() Containment { return p.contained(p.roots[0], p.roots[1]) })
	e := explainer{p: p, backward: backward, whole: whole.Answer, open: map[[2]int32]bool{}, visits: map[[2]int32]int{}}
	e.compare(a.Compiled(ir.Key{}).Root, b.Compiled(ir.Key{}).Root, site{})
	e.conclude(whole)
	slices.SortStableFunc(e.findings, func(x, y Finding) int {
		return cmp.Or(cmp.Compare(x.Path, y.Path), cmp.Compare(x.Rule, y.Rule), cmp.Compare(x.A, y.A), cmp.Compare(x.B, y.B))
	})
	return e.findings
}

// answer is limited for a question about containment. The findings share the
// prover, and with it all that has been proven about the parts, but not the
// steps: a hard question about the whole must not leave them without any.
func (p *prover) answer(steps int, ask func() Containment) (c Containment) {
	p.limited(steps, func() result {
		c = ask()
		return result{}
	})
	return c
}

// explainer walks two schemas side by side and records where they differ. It
// looks for differences of form first and only then asks the prover whether
// they matter, so that the findings name keywords and not formulas.
type explainer struct {
	p        *prover
	backward bool // findings read from the second schema to the first
	whole    Answer
	open     map[[2]int32]bool // pairs of forms that are being walked
	visits   map[[2]int32]int
	findings []Finding
}

// site is the way from the roots to a pair of schemas. path is what the report
// shows; steps are what the prover needs to say "a document with such a value
// at this place".
type site struct {
	path  string
	steps []siteStep
}

// siteStep leads from a value to one of its parts, or, as stepGiven, adds a
// condition on the value itself: that it matches a certain branch of a union.
type siteStep struct {
	given termID   // stepGiven: what the value satisfies
	name  nameID   // stepMember: the member with this name
	names []nameID // stepOther: some member with none of these names
	kind  stepKind
}

type stepKind uint8

const (
	stepGiven stepKind = iota
	stepMember
	stepOther
	stepElement
)

// member, element, other and given extend a site by one step.
func (s site) member(p *prover, name string) site {
	return s.extend(jsonptr.Child(s.path, name), siteStep{kind: stepMember, name: p.name(name)})
}

func (s site) element() site { return s.extend(s.path+"/*", siteStep{kind: stepElement}) }

func (s site) other(names []nameID) site {
	return s.extend(s.path+"/*", siteStep{kind: stepOther, names: names})
}

func (s site) given(t termID) site { return s.extend(s.path, siteStep{kind: stepGiven, given: t}) }

// extend copies the steps, because several sites share their beginning.
func (s site) extend(path string, step siteStep) site {
	return site{path: path, steps: append(s.steps[:len(s.steps):len(s.steps)], step)}
}

// reach returns the term of a document in which a value at the site satisfies
// t. It is built from the inside out: an object with a member that is an array
// with an element that satisfies t.
func (s site) reach(p *prover, t termID) termID {
	for _, step := range slices.Backward(s.steps) {
		switch step.kind {
		case stepGiven:
			t = p.and(step.given, t)
		case stepMember:
			t = p.and(p.ofSorts(sortObject), p.member(step.name, t))
		case stepOther:
			t = p.and(p.ofSorts(sortObject), p.intern(term{op: opOther, names: step.names, args: []termID{t}}))
		case stepElement:
			t = p.and(p.ofSorts(sortArray), p.intern(term{op: opSome, args: []termID{t}}))
		}
	}
	return t
}

// report records a difference. violation is the term of the values at the site
// that the second schema rejects because of it. Such values may be out of reach
// (another keyword of the first schema rejects them as well) or accepted by
// another branch of the second. Whether anything breaks is therefore decided
// for whole documents.
func (e *explainer) report(f Finding, at site, violation termID) {
	f.Path = at.path
	if e.whole != Proven && violation != termFalse {
		f.Breaking, f.Witness = e.breaks(at.reach(e.p, violation))
	}
	e.add(f)
}

// add records a finding, in the direction in which it is to read.
func (e *explainer) add(f Finding) {
	if e.backward {
		f.Rule, f.Direction, f.A, f.B = f.Rule.opposite(), f.Direction.opposite(), f.B, f.A
	}
	e.findings = append(e.findings, f)
}

// say returns what a message says in the direction in which it is to read.
func (e *explainer) say(forward, backward string) string {
	if e.backward {
		return backward
	}
	return forward
}

// breaks looks for a document that the first schema accepts, the second rejects
// and a term holds of. Each finding gets a sixteenth of the budget. A finding
// that stays undecided counts as breaking: callers must fail closed.
func (e *explainer) breaks(t termID) (bool, []byte) {
	p := e.p
	a, b := p.roots[0], p.roots[1]
	goal := p.conjunction(nil, p.formOf(a, false), p.formOf(b, true), t)
	const share = 16
	r, cut := p.limited(p.budget.Steps/share, func() result { return p.sat(goal) })
	switch {
	case r.status == statusUnsat && !cut:
		return p.spent != "", nil
	case r.status == statusSat && p.forms[a].check(p.ctx, r.value) == schema.Valid && p.forms[b].check(p.ctx, r.value) == schema.Invalid:
		return true, slices.Clone(r.value)
	}
	return true, nil
}

// conclude makes the findings agree with the answer about the whole, which is
// what callers act on: a schema that is refuted has a breaking finding, even if
// none of the differences breaks anything alone.
func (e *explainer) conclude(whole Containment) {
	broken := slices.ContainsFunc(e.findings, func(f Finding) bool { return f.Breaking })
	switch {
	case whole.Answer == Refuted && !broken:
		e.add(Finding{
			Rule: RuleSchemaChanged, Direction: Changed, Breaking: true,
			Message: "the schemas differ in how their parts work together", Witness: whole.Witness,
		})
	case whole.Answer == Undecided:
		f := Finding{
			Rule: RuleUndecided, Direction: Changed, Breaking: true,
			Message: "containment could not be decided (" + string(whole.Reason) + ")",
		}
		if whole.Side == SideA {
			f.A = whole.Pointer
		} else {
			f.B = whole.Pointer
		}
		e.add(f)
	}
}
