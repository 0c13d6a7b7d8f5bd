package verdict

import "context"

// DefaultSteps is how much work a [Validator] does at most for one payload, unless
// told otherwise. A step is a byte read once more than once, or an operation on a
// machine word in a large pattern: all of them take about half a second.
const DefaultSteps = 1 << 29

// stride is how many steps are taken between two looks at the context, of which the
// first comes after one stride: a verdict that takes less than a millisecond is given
// even where the context has ended, since the answer of a call may come at its end.
const stride = 1 << 20

// A budget is what is left of the work that one payload may cost. What takes time in
// proportion to the payload alone is paid for once, at the start; after that only
// what reads bytes again pays: branches of combinators, what patternProperties ask of a
// name and of its value, and patterns that take many operations for a character. All else
// goes by without counting.
type budget struct {
	left   int // steps until the next look
	rest   int // steps after that
	over   bool
	spared int // bytes that the memo knew
	ctx    context.Context
}

// start grants steps until ctx ends, and takes those that a payload of so many bytes
// costs at least.
func (b *budget) start(ctx context.Context, steps, bytes int) {
	first := min(steps, stride)
	*b = budget{left: first, rest: steps - first, ctx: ctx}
	b.Spend(bytes + 1)
}

// Spend takes n steps off, and reports whether so many were left. Once they were not,
// no more are.
func (b *budget) Spend(n int) bool {
	if b.left -= n; b.left < 0 {
		b.refill()
	}
	return !b.over
}

// account goes down by each step taken, and by each byte that needed none.
func (b *budget) account() int { return b.left + b.rest - b.spared }

// Over reports whether the steps are used up, or the context has ended: what was
// found out since then counts for nothing.
func (b *budget) Over() bool { return b.over }

// refill takes steps for the next stride out of the rest.
func (b *budget) refill() {
	if b.rest < -b.left || b.ctx.Err() != nil {
		b.over, b.rest, b.left = true, 0, 0
		return
	}
	take := min(b.rest, stride-b.left)
	b.rest -= take
	b.left += take
}
