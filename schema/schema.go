package schema

import (
	"context"
	"slices"
	"strconv"

	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/schema/internal/compile"
	"github.com/agentd/agentd/schema/internal/ir"
	"github.com/agentd/agentd/schema/internal/pattern"
	"github.com/agentd/agentd/schema/internal/verdict"
)

// Schema is a compiled schema. It never changes and is safe for concurrent
// use: what a pass over a payload needs is taken from a pool.
type Schema struct {
	form      *ir.Schema
	validator verdict.Validator
	objects   bool   // {} stands for null, see Arguments
	limits    Limits // every field set
}

// Compile compiles a schema of the subset that the package comment describes,
// given as JSON. The error is a *[CompileError] that lists every fault. src is
// not kept.
func Compile(src []byte) (*Schema, error) {
	return finish(compile.Compile(src))
}

// finish makes a schema of its compiled form, or an error of the faults.
func finish(form *ir.Schema, faults []compile.Fault) (*Schema, error) {
	if len(faults) > 0 {
		refusal := &CompileError{Faults: make([]Fault, 0, len(faults))}
		for _, f := range faults {
			refusal.Faults = append(refusal.Faults, Fault(f))
		}
		return nil, refusal
	}
	s := newSchema(form, defaultLimits())
	s.objects = s.takesObjects()
	return s, nil
}

// CompileLimits bound what compiling a schema can cost. A zero field means its default.
type CompileLimits struct {
	// MaxBytes is the length of the longest schema. The default is
	// [DefaultMaxSchemaBytes].
	MaxBytes int
	// MaxSteps bounds the work: one for each byte, and some for each schema, each JSON value,
	// each value of an enum and each branch of a union. The default is [DefaultMaxCompileSteps].
	MaxSteps int
	// MaxPatternSteps bounds the work on the patterns of the schema together, beside
	// MaxSteps: a few bytes can ask for an automaton of thousands of states. A schema
	// beyond it is refused with a fault at the pattern. The default is
	// [DefaultMaxPatternSteps].
	MaxPatternSteps int
}

// The defaults of [CompileLimits].
const (
	DefaultMaxSchemaBytes  = compile.DefaultMaxBytes
	DefaultMaxCompileSteps = compile.DefaultMaxSteps // about two seconds
	DefaultMaxPatternSteps = pattern.DefaultMaxSteps // some tenths of a second
)

// CompileWithin is [CompileWith] for schemas that strangers wrote: within limits, and until
// ctx ends. The error is an *[ExceededError] then, and otherwise a *[CompileError].
func CompileWithin(ctx context.Context, src []byte, opts CompileOptions, l CompileLimits) (*Schema, error) {
	l = l.orDefault()
	if opts.Profile == ProfileSubset {
		return l.finish(compile.Within(ctx, src, compile.Budget(l)))
	}
	return l.finish(compile.FullWithin(ctx, src, compile.Budget(l), opts.full()))
}

// orDefault fills in the defaults.
func (l CompileLimits) orDefault() CompileLimits {
	if l.MaxBytes <= 0 {
		l.MaxBytes = DefaultMaxSchemaBytes
	}
	if l.MaxSteps <= 0 {
		l.MaxSteps = DefaultMaxCompileSteps
	}
	if l.MaxPatternSteps <= 0 {
		l.MaxPatternSteps = DefaultMaxPatternSteps
	}
	return l
}

// finish is the function finish for what was compiled within limits.
func (l CompileLimits) finish(form *ir.Schema, faults []compile.Fault, exceeded *compile.Exceeded) (*Schema, error) {
	switch {
	case exceeded == nil:
		return finish(form, faults)
	case exceeded.Bytes:
		return nil, &ExceededError{work: "schema", Limit: strconv.Itoa(l.MaxBytes) + " bytes"}
	}
	return nil, &ExceededError{work: "compiling", Limit: strconv.Itoa(l.MaxSteps) + " steps", Cause: exceeded.Cause}
}

// newSchema returns a schema under limits of which every field is set.
func newSchema(form *ir.Schema, l Limits) *Schema {
	return &Schema{
		form: form, limits: l,
		validator: verdict.Validator{
			Schema: form, Root: form.Root, MaxDepth: l.MaxDepth, MaxBytes: l.MaxBytes, MaxSteps: l.MaxSteps,
		},
	}
}

// Limits bound what one payload can cost. A zero field means its default.
type Limits struct {
	// MaxDepth is how many arrays and objects may be open at once. Deeper
	// payloads are malformed. The default is 512, the most 4096: judging is
	// recursive, and Go ends a process whose stack exceeds a gigabyte.
	MaxDepth int
	// MaxBytes is the length of the longest payload, in bytes. Longer ones
	// are malformed. The default is 64 MiB.
	MaxBytes int
	// MaxSteps bounds the work on a payload: its bytes, those that the branches of
	// oneOf, anyOf, allOf and not and the entries of patternProperties read, and the
	// operations on machine words of patterns that take more than a look-up for each
	// character. Listing the violations may take as much again. Payloads that take
	// more are neither valid nor invalid, see [Exceeded]. The default is
	// [DefaultMaxSteps].
	MaxSteps int
	// MaxViolations is how many violations are listed, at most as many as fill
	// 128 KiB. The default is [DefaultMaxViolations].
	MaxViolations int
	// RedactNames hides the names of members that the schema does not declare, which
	// whoever sends a payload chooses: "*" stands for them in paths, and messages leave
	// them out.
	RedactNames bool
}

// DefaultMaxViolations is the default of [Limits].
const DefaultMaxViolations = 100

// DefaultMaxSteps is the default of [Limits]. So many steps take about half a second;
// a payload of 1 MiB has 512 for each byte.
const DefaultMaxSteps = verdict.DefaultSteps

// MaxOmitted is the most that [Report.Omitted] counts to: a payload can hold
// millions of violations, and finding one of a union means trying every branch.
const MaxOmitted = 1000

// mostDepth is the highest bound on depth. With the 128 steps that combinators may nest for each
// level, the stack stays within some 500 MB.
const mostDepth = 4096

// defaultLimits are the limits that [Limits] documents.
func defaultLimits() Limits {
	return Limits{MaxDepth: ijson.DefaultMaxDepth, MaxBytes: 64 << 20, MaxSteps: DefaultMaxSteps, MaxViolations: DefaultMaxViolations}
}

// WithLimits returns the same schema under other limits. It shares the compiled
// form, so that it costs nothing.
func (s *Schema) WithLimits(l Limits) *Schema {
	d := defaultLimits()
	if l.MaxDepth > 0 {
		d.MaxDepth = min(l.MaxDepth, mostDepth)
	}
	if l.MaxBytes > 0 {
		d.MaxBytes = l.MaxBytes
	}
	if l.MaxSteps > 0 {
		d.MaxSteps = l.MaxSteps
	}
	if l.MaxViolations > 0 {
		d.MaxViolations = l.MaxViolations
	}
	d.RedactNames = l.RedactNames
	limited := newSchema(s.form, d)
	limited.objects = s.objects
	return limited
}

// Limits returns the limits of s, every field set.
func (s *Schema) Limits() Limits { return s.limits }

// Source returns the schema's JSON as it was compiled.
func (s *Schema) Source() []byte { return slices.Clone(s.form.Source) }

// Compiled returns the form to which s was compiled. It is for the packages
// below this one, such as contain: no other can make a key.
func (s *Schema) Compiled(ir.Key) *ir.Schema { return s.form }

// Verdict is the answer to whether a payload is valid.
type Verdict uint8

// The answers. The zero value is none of them.
const (
	Valid     Verdict = iota + 1 // the payload passes
	Invalid                      // the payload is JSON that breaks the schema
	Malformed                    // the payload is not one strict JSON value within the limits
	Exceeded                     // there was no answer within Limits.MaxSteps, or before the context ended
)

// String returns "valid", "invalid", "malformed" or "exceeded".
func (v Verdict) String() string {
	switch v {
	case Valid:
		return "valid"
	case Invalid:
		return "invalid"
	case Malformed:
		return "malformed"
	case Exceeded:
		return "exceeded"
	}
	return "Verdict(" + strconv.Itoa(int(v)) + ")"
}

// Violation is one way in which a payload breaks a schema.
type Violation struct {
	// Path is an RFC 6901 pointer to the value at fault, "" for the root; for
	// a missing or a surplus member it names that member. Names longer than
	// 128 bytes, and paths longer than 2048, are cut and end in "…".
	Path string `json:"path"`
	// Message says what is wrong. It holds no part of the payload but, cut to
	// 64 bytes, the name of a surplus member, which [Limits] can hide.
	Message string `json:"message"`
	// Keyword is the rule that was broken.
	Keyword Keyword `json:"-"`
}

// SyntaxError is why a payload is malformed: the byte offset and the rule.
type SyntaxError = ijson.SyntaxError

// Report is the full answer about one payload.
type Report struct {
	// Verdict is one of the answers.
	Verdict Verdict
	// Violations is set where Verdict is Invalid, in the order of the payload.
	Violations []Violation
	// Truncated says that there are more violations than the limit.
	Truncated bool
	// Omitted counts the violations that were left out for the limit, so that it
	// is positive exactly if Truncated is set. [MaxOmitted] means so many or more.
	// Of a union that nothing fits, the first eight causes are violations, and no
	// others: the author may have meant another branch.
	Omitted int
	// Syntax is set where Verdict is Malformed.
	Syntax *SyntaxError
	// Exceeded is set where Verdict is Exceeded.
	Exceeded *ExceededError
}

// ExceededError is why there is no answer about a payload, or no compiled schema.
type ExceededError struct {
	work string // what would have exceeded the limit; "" is the validation
	// Limit is what was exceeded, in words.
	Limit string
	// Cause is why the context ended, or nil.
	Cause error
}

// Error names the limit.
func (e *ExceededError) Error() string {
	work, takes := "validation", " takes more than "
	switch e.work {
	case "":
	case "schema":
		work, takes = "the schema", " has more than "
	default:
		work = e.work + " the schema"
	}
	if e.Cause != nil {
		return work + " was cut short: " + e.Cause.Error()
	}
	return work + takes + e.Limit
}

// Unwrap returns Cause.
func (e *ExceededError) Unwrap() error { return e.Cause }

// Valid reports whether doc is valid. It stops at the first fault and, on
// valid payloads, allocates nothing. A malformed payload is not valid. doc is
// only read, and not kept.
func (s *Schema) Valid(doc []byte) bool {
	return s.validator.Valid(doc)
}

// Check judges doc and lists its violations. On valid payloads it costs what
// Valid costs; others are read again, for their syntax and then for what is
// wrong. That the syntax is checked as a whole first means that a payload that
// is both malformed and invalid is always reported as malformed.
func (s *Schema) Check(doc []byte) Report { return s.CheckWithin(context.Background(), doc) }

// CheckWithin is [Schema.Check] until ctx ends. The verdict is [Exceeded] then, as it is
// for a payload that takes more than [Limits.MaxSteps]. Where the payload is known to
// be invalid by that time, the list of violations is cut short instead.
func (s *Schema) CheckWithin(ctx context.Context, doc []byte) Report {
	j := s.validator.Judge(ctx, doc)
	switch {
	case j.Valid:
		return Report{Verdict: Valid}
	case j.Malformed != nil:
		return Report{Verdict: Malformed, Syntax: j.Malformed}
	case j.Exceeded:
		limit := strconv.Itoa(s.limits.MaxSteps) + " steps"
		return Report{Verdict: Exceeded, Exceeded: &ExceededError{Limit: limit, Cause: ctx.Err()}}
	}
	return s.explain(ctx, doc, j.Fault)
}

// Validate lists the violations of doc; nil means that it is valid. A
// malformed payload is one violation with [KeywordSyntax], and one about which there is
// no answer one with [KeywordLimit]. Where there are more violations than the limit, the last one has [KeywordLimit].
func (s *Schema) Validate(doc []byte) []Violation {
	report := s.Check(doc)
	switch {
	case report.Verdict == Malformed:
		return []Violation{{Message: report.Syntax.Error(), Keyword: KeywordSyntax}}
	case report.Verdict == Exceeded:
		return []Violation{{Message: report.Exceeded.Error(), Keyword: KeywordLimit}}
	case report.Truncated:
		msg := "more than " + strconv.Itoa(len(report.Violations)) + " violations; the rest is not listed"
		return append(report.Violations, Violation{Message: msg, Keyword: KeywordLimit})
	}
	return report.Violations
}
