package contain

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/internal/ir"
)

// Answer is the outcome of a proof.
type Answer uint8

// The outcomes. The zero value is none of them.
const (
	Proven    Answer = iota + 1 // every value of the one schema is a value of the other
	Refuted                     // some value is not; the witness is one
	Undecided                   // neither was shown; the reason says why
)

// String returns "proven", "refuted" or "undecided".
func (a Answer) String() string {
	switch a {
	case Proven:
		return "proven"
	case Refuted:
		return "refuted"
	case Undecided:
		return "undecided"
	}
	return "Answer(" + strconv.Itoa(int(a)) + ")"
}

// Side tells the two schemas of a comparison apart.
type Side uint8

// The sides, in the order of the arguments.
const (
	SideA Side = iota
	SideB
)

// String returns "a" or "b".
func (s Side) String() string {
	if s == SideA {
		return "a"
	}
	return "b"
}

// Reason is why something could not be decided.
type Reason string

// The reasons. All but ReasonTime depend only on the schemas and the budget.
const (
	ReasonSteps   Reason = "steps"   // Budget.Steps were used up
	ReasonTime    Reason = "time"    // the context or, where set, Budget.Time ended
	ReasonPattern Reason = "pattern" // the automata of patterns and formats grew beyond Budget.Strings
	ReasonFormat  Reason = "format"  // the answer turns on a leap second in a date-time with an offset
	ReasonNumber  Reason = "number"  // limits with hundreds of digits leave hardly any room
	ReasonArray   Reason = "array"   // too many elements with demands of their own, or that must differ
	ReasonObject  Reason = "object"  // demands on unnamed members interact with excluded objects
	ReasonDepth   Reason = "depth"   // values nest too deep
	ReasonWitness Reason = "witness" // values exist only beyond Budget.Witness, or the validator's own limits
	// ReasonKeyword is for keywords of the full profile that are beyond proof.
	ReasonKeyword Reason = "keyword"
	// ReasonInternal is a fault of this package: its engines disagree. It is
	// logged, and the answer is as safe as any other that is undecided.
	ReasonInternal Reason = "internal"
)

// Containment is the answer to whether one schema is contained in another.
type Containment struct {
	Answer Answer
	// Witness is set where Answer is Refuted: a JSON value that the first
	// schema accepts and the second rejects. Both have been asked.
	Witness json.RawMessage
	// Reason is set where Answer is Undecided, and so are, for reasons that
	// belong to a place, Side and Pointer: the schema at which the proof got
	// stuck, as an RFC 6901 pointer; "" is the root.
	Reason  Reason
	Side    Side
	Pointer string
}

// Budget bounds the work of one question. A zero field means its default.
// It counts steps and looks at no clock, so that answers are the same on every
// machine, however busy. Only the end of the context adds one that depends on it.
type Budget struct {
	// Steps bounds the reasoning. The default is [DefaultSteps]. A step takes
	// about a quarter of a microsecond, so that a question which uses up the
	// default takes a quarter of a second.
	Steps int
	// Strings bounds the steps of automata for one question about strings.
	// The default is 1,000,000.
	Strings int
	// Witness is the length of the longest witness, in bytes. The default is
	// 1 MiB.
	Witness int
	// Time, if it is set, bounds the wall clock as well.
	Time time.Duration
	// Logger receives faults of this package, as errors: the prover and the
	// validator judge a value differently. Nil discards them.
	Logger *slog.Logger
}

// DefaultSteps is the default of [Budget.Steps]: room for unions of 300 tagged
// branches, and for ranges by the thousand.
const DefaultSteps = 1_000_000

// bounded adds the budget's bound on time, if it has one, to ctx.
func (b Budget) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if b.Time <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, b.Time)
}

// stringStepsPerStep relates the steps of automata to those of reasoning, by the
// time that they take.
const stringStepsPerStep = 16

func (b Budget) orDefault() Budget {
	if b.Steps <= 0 {
		b.Steps = DefaultSteps
	}
	if b.Strings <= 0 {
		b.Strings = 1_000_000
	}
	if b.Witness <= 0 {
		b.Witness = 1 << 20
	}
	return b
}

// IsSubschema decides whether every value that a accepts is accepted by b,
// within the default [Budget]. A schema without values is contained in every
// other.
//
// The answer is sound: Proven rests on a proof, and the witness of Refuted has
// been checked by both schemas' validators.
func IsSubschema(a, b *schema.Schema) Containment {
	return IsSubschemaWithin(context.Background(), a, b, Budget{})
}

// IsSubschemaWithin is [IsSubschema] within a budget. When ctx ends, the
// answer is Undecided with [ReasonTime], unless it is found at once.
func IsSubschemaWithin(ctx context.Context, a, b *schema.Schema, budget Budget) Containment {
	// By the full profile, one source can mean different things.
	if x, y := a.Compiled(ir.Key{}), b.Compiled(ir.Key{}); x.Root == y.Root || !x.Full && !y.Full && bytes.Equal(x.Source, y.Source) {
		return Containment{Answer: Proven}
	}
	ctx, cancel := budget.bounded(ctx)
	defer cancel()
	p := newProver(ctx, budget, a, b)
	return p.contained(p.roots[0], p.roots[1])
}

// contained decides containment of two forms. A witness must convince the
// production validators and not only the search, since the caller shows it to
// people as a call that worked before and fails now.
func (p *prover) contained(a, b int32) Containment {
	if p.spent != "" { // before the schemas were read in full
		return Containment{Answer: Undecided, Reason: p.spent}
	}
	if a == b {
		return Containment{Answer: Proven}
	}
	r := p.sat(p.conjunction(nil, p.formOf(a, false), p.formOf(b, true)))
	switch {
	case r.status == statusSat:
		inA, inB := p.forms[a].check(p.ctx, r.value), p.forms[b].check(p.ctx, r.value)
		if inA != schema.Valid || inB != schema.Invalid {
			return Containment{Answer: Undecided, Reason: p.unverified(r.value, inA, inB)}
		}
		return Containment{Answer: Refuted, Witness: slices.Clone(r.value)}
	case p.spent != "":
		return Containment{Answer: Undecided, Reason: p.spent}
	case r.status == statusMaybe:
		return Containment{Answer: Undecided, Reason: r.reason, Side: r.at.side, Pointer: r.at.pointer}
	}
	return Containment{Answer: Proven}
}
