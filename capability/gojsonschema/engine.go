package gojsonschema

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	library "github.com/xeipuuv/gojsonschema"

	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/internal/jcs"
	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/schema"
)

// Bounds of what a report can hold, in bytes: of a path, of a message, and of all
// of them, as in package schema.
const (
	maxPath    = 2048
	maxMessage = 512
	maxListed  = 128 << 10
)

// A Validator checks payloads with the library. It is safe for concurrent use.
type Validator struct {
	native *schema.Schema
	schema *library.Schema
	exact  bool // the schema compares numbers by equality
	runs   *runs
}

// Compile returns a validator for a compiled schema. The error is a
// [*RefusedError] if the library cannot enforce the schema safely.
func Compile(s *schema.Schema) (*Validator, error) { return CompileAt(s, s.Root()) }

// CompileAt is [Compile] for one schema inside s.
func CompileAt(s *schema.Schema, n schema.Node) (*Validator, error) {
	if s.Profile() != schema.ProfileSubset {
		// The rewritten schema would lack some keywords, and accept what they refuse.
		return nil, &RefusedError{Pointer: n.Pointer(), Reason: "keywords of the full profile"}
	}
	if err := checkCost(n); err != nil {
		return nil, err
	}
	text, err := standAlone(n, forLibrary)
	if err != nil {
		return nil, fmt.Errorf("gojsonschema: %w", err)
	}
	canonical, err := jcs.Append(nil, text)
	if err != nil {
		return nil, fmt.Errorf("gojsonschema: %w", err)
	}
	exact := comparesNumbers(n, make(map[schema.Node]bool))
	if badNumber(canonical, false) || exact && badNumber(equalities(n), true) {
		return nil, &RefusedError{Pointer: n.Pointer(), Reason: "a number that the library does not hold exactly, somewhere"}
	}
	if err := addFormats(n, make(map[schema.Node]bool)); err != nil {
		return nil, err
	}
	compiled, err := compile(text)
	if err != nil {
		return nil, err
	}
	return &Validator{native: s, schema: compiled, exact: exact, runs: newRuns()}, nil
}

// equalities returns a JSON array of the values that a schema compares
// payloads with: those of enum and const, at any depth.
func equalities(root schema.Node) []byte {
	out := []byte{'['}
	seen := make(map[schema.Node]bool)
	var walk func(n schema.Node)
	walk = func(n schema.Node) {
		if seen[n] {
			return
		}
		seen[n] = true
		literals := n.Enum()
		if value, ok := n.Const(); ok {
			literals = append(literals, value)
		}
		for _, l := range literals {
			out = append(append(out, l.JSON...), ',')
		}
		for _, e := range edges(n) {
			walk(e.to)
		}
	}
	walk(root)
	canonical, err := jcs.Append(nil, append(out, "null]"...))
	if err != nil {
		return []byte("1e999") // never: the literals are compiled JSON. Refused.
	}
	return canonical
}

// compile has the library compile a schema. It turns a panic into an error.
// AutoDetect is off, so that only draft-07 applies.
func compile(text []byte) (compiled *library.Schema, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("gojsonschema: the library panicked on the schema: %v", r)
		}
	}()
	loader := library.NewSchemaLoader()
	loader.Draft, loader.AutoDetect = library.Draft7, false
	compiled, err = loader.Compile(library.NewBytesLoader(text))
	if err != nil {
		return nil, fmt.Errorf("gojsonschema: %w", err)
	}
	return compiled, nil
}

// format is one of package schema's formats in the library's table. It
// accepts values that are no strings: formats constrain strings only
// (draft-07 validation, section 7.1).
type format struct{ schema *schema.Schema }

// IsFormat implements the library's FormatChecker.
func (f format) IsFormat(input any) bool {
	text, ok := input.(string)
	if !ok {
		return true
	}
	quoted, err := jcs.Marshal(text)
	return err == nil && f.schema.Valid(quoted)
}

// addFormats puts the formats that a schema uses into the library's table.
// Adding one again changes nothing, and the table is guarded by the library's
// own lock.
func addFormats(n schema.Node, seen map[schema.Node]bool) error {
	if seen[n] {
		return nil
	}
	seen[n] = true
	if name := string(n.Format()); name != "" {
		compiled, err := schema.Compile([]byte(`{"type":"string","format":` + strconv.Quote(name) + `}`))
		if err != nil {
			return fmt.Errorf("gojsonschema: %w", err)
		}
		library.FormatCheckers.Add(formatPrefix+name, format{compiled})
	}
	for _, e := range edges(n) {
		if err := addFormats(e.to, seen); err != nil {
			return err
		}
	}
	return nil
}

// Check is [Validator.CheckWithin] without a context.
func (v *Validator) Check(payload []byte) schema.Report {
	return v.CheckWithin(context.Background(), payload)
}

// CheckWithin validates one payload. It never panics, and it fails closed: a
// payload that the library cannot judge is invalid, and one that takes it longer than
// [Deadline], or than ctx lasts, is neither valid nor invalid.
func (v *Validator) CheckWithin(ctx context.Context, payload []byte) schema.Report {
	// Canonical form (RFC 8785) writes equal numbers equally, which spares the
	// library from comparing 1 with 1.0.
	canonical, err := jcs.Append(nil, payload)
	// Which of the two rules is broken decides the verdict: text that is no JSON is
	// malformed for both engines alike.
	if err != nil || ijson.Check(payload, ijson.DefaultMaxDepth) != nil {
		if report := v.native.CheckWithin(ctx, payload); report.Verdict == schema.Malformed {
			return report
		}
		return limit("the payload is beyond the engine's bounds")
	}
	if badNumber(canonical, v.exact) {
		return limit("a number is beyond what the gojsonschema engine compares exactly")
	}
	found, err := v.runs.judge(ctx, v, canonical)
	var exceeded *schema.ExceededError
	if errors.As(err, &exceeded) {
		return schema.Report{Verdict: schema.Exceeded, Exceeded: exceeded}
	}
	if err != nil {
		return limit("the gojsonschema engine failed on the payload")
	}
	if len(found) == 0 {
		return schema.Report{Verdict: schema.Valid}
	}
	if v.native.Limits().RedactNames {
		return v.redacted(payload)
	}
	return report(found, v.native.Limits().MaxViolations)
}

// redacted is the report of an invalid payload without names that the sender chose. The
// library does not say which names the schema declares, so that the words are the native
// engine's; where that accepts the payload, there are none.
func (v *Validator) redacted(payload []byte) schema.Report {
	if r := v.native.Check(payload); r.Verdict == schema.Invalid {
		return r
	}
	return schema.Report{Verdict: schema.Invalid, Violations: []schema.Violation{{Message: "the value is invalid"}}}
}

// limit returns the report of a payload that the engine cannot judge.
func limit(message string) schema.Report {
	return schema.Report{Verdict: schema.Invalid, Violations: []schema.Violation{{Message: message, Keyword: schema.KeywordLimit}}}
}

var errDeadline = errors.New("gojsonschema: the deadline of a payload")

var errPanic = errors.New("gojsonschema: the library panicked on the payload")

// judge has the library validate a payload. It turns a panic into an error.
func (v *Validator) judge(canonical []byte) (found []library.ResultError, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errPanic // without r: it may hold part of the payload
		}
	}()
	result, err := v.schema.Validate(library.NewBytesLoader(canonical))
	if err != nil {
		return nil, err
	}
	return result.Errors(), nil
}

// report turns the library's errors into violations. It sorts them, because
// the library iterates over Go maps and returns them in random order. It lists the
// first most of them.
func report(found []library.ResultError, most int) schema.Report {
	out := schema.Report{Verdict: schema.Invalid}
	for _, f := range found {
		if violation, ok := violation(f); ok {
			violation.Path = truncate.String(violation.Path, maxPath)
			violation.Message = truncate.String(violation.Message, maxMessage)
			out.Violations = append(out.Violations, violation)
		}
	}
	slices.SortStableFunc(out.Violations, func(a, b schema.Violation) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Keyword, b.Keyword), cmp.Compare(a.Message, b.Message))
	})
	// A schema that several branches refer to reports the same error more than
	// once.
	out.Violations = slices.Compact(out.Violations)
	size := 0
	for i, v := range out.Violations {
		// What names and numbers of a payload make of them must fit a record.
		if size += len(v.Path) + len(v.Message); size > maxListed {
			most = min(most, i+1)
			break
		}
	}
	if more := len(out.Violations) - most; more > 0 {
		out.Violations, out.Truncated, out.Omitted = out.Violations[:most], true, min(more, schema.MaxOmitted)
	}
	return out
}

// separator joins the names in a path of the library. Names in payloads
// rarely hold a NUL, so splitting gives them back.
const separator = "\x00"

// pointer turns the library's path into an RFC 6901 pointer.
func pointer(c *library.JsonContext, more ...string) string {
	names := append(strings.Split(c.String(separator), separator)[1:], more...)
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var b strings.Builder
	for _, name := range names {
		b.WriteString("/" + escape.Replace(name))
	}
	return b.String()
}
