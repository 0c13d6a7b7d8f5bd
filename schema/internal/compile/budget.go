package compile

import "github.com/agentd/agentd/schema/internal/pattern"

// The defaults of [Budget].
const (
	// DefaultMaxBytes is the size of the largest schema. Peers publish schemas, and a
	// compiled one takes many times the room of its source.
	DefaultMaxBytes = 8 << 20
	// DefaultMaxSteps allows a schema of that size that repeats nothing. So many steps
	// take about two seconds.
	DefaultMaxSteps = 1 << 24
)

// A Budget bounds the work on one schema, beside the bounds on its patterns. A step is
// about one of its parts: a byte read, a schema, a value of an enum, or a branch that
// is looked at.
type Budget struct {
	MaxBytes int // of the source
	MaxSteps int
	// MaxPatternSteps is for the automata of all patterns together.
	MaxPatternSteps int
}

func defaultBudget() Budget {
	return Budget{MaxBytes: DefaultMaxBytes, MaxSteps: DefaultMaxSteps, MaxPatternSteps: pattern.DefaultMaxSteps}
}

// An Exceeded says which bound a schema goes beyond.
type Exceeded struct {
	Bytes bool  // MaxBytes, or else MaxSteps
	Cause error // why the context ended; nil if it did not
}

// What parts of a schema cost beside their bytes.
const (
	stepsOfValue   = 4 // any JSON value: it is parsed before it is known what it means
	stepsOfSchema  = 16
	stepsOfLiteral = 8
	stepsOfFault   = 16
)

// mostWords is with how many words all hints together compare. A comparison can take
// microseconds, and a hint is worth less than an answer: beyond this there are none.
const mostWords = 1 << 16

// spendAt pays for writing the pointer to a place with so many members, and one to each
// of these. A name can be megabytes long, and is in the pointer to everything inside.
func (c *compiler) spendAt(pointer string, members int) bool {
	return c.spend(len(pointer)/8 + members*(len(pointer)/32))
}

// spend takes off steps, and reports whether any are left. Without, the compiler takes
// nothing more in, and returns soon.
func (c *compiler) spend(n int) bool {
	before := c.steps
	c.steps -= n
	if c.exceeded == nil {
		switch {
		case c.steps < 0:
			c.exceeded = &Exceeded{}
		case before>>12 != c.steps>>12 && c.ctx.Err() != nil:
			c.exceeded = &Exceeded{Cause: c.ctx.Err()}
		}
	}
	return c.exceeded == nil
}
