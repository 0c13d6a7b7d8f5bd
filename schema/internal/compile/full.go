package compile

import (
	"context"
	"slices"
	"strings"

	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/schema/internal/format"
	"github.com/agentd/agentd/schema/internal/ir"
	"github.com/agentd/agentd/schema/internal/jsonptr"
	"github.com/agentd/agentd/schema/internal/jsontree"
	"github.com/agentd/agentd/schema/internal/memo"
)

// Dialect is a version of JSON Schema.
type Dialect uint8

// The dialects of the full profile.
const (
	Draft202012 Dialect = iota
	Draft201909
	Draft07
)

// Options choose what the full profile leaves open.
type Options struct {
	Dialect       Dialect // of a document that does not say
	AssertFormats bool    // format can fail; otherwise it is an annotation
	Nullable      bool    // nullable of OpenAPI 3.0 adds null to type
}

// Full compiles a schema by the full profile: the whole vocabulary of three dialects.
// Keywords that no dialect knows are ignored, as the drafts ask, and remarked upon.
//
// It works as Compile does, with the same functions for the keywords that both know,
// and differs in how it finds schemas (resource.go): a $ref may lead anywhere in the
// document, and with $dynamicRef a schema means different things by the way that led to it.
func Full(src []byte, opts Options) (*ir.Schema, []Fault) {
	return faulted(FullWithin(context.Background(), src, defaultBudget(), opts))
}

// FullWithin is Full within a budget, and until ctx ends. If exceeded is set, there is
// neither a schema nor a fault.
func FullWithin(ctx context.Context, src []byte, budget Budget, opts Options) (s *ir.Schema, faults []Fault, exceeded *Exceeded) {
	var f *fullProfile
	s, faults, exceeded = within(ctx, src, budget, func(c *compiler, t *jsontree.Tree) *ir.Node {
		f = &fullProfile{c: c, opts: opts, nodes: map[nodeKey]*ir.Node{}, entered: map[entry]int{}, index: newIndex()}
		return f.compile(t)
	})
	if s == nil {
		return nil, distinct(faults), exceeded
	}
	s.Remarks = f.remarks
	// Where a keyword looks at the branches of others again, any of them may be asked
	// twice about one value.
	for _, n := range s.Nodes {
		n.Shared = n.Shared || f.looksTwice
	}
	return s, nil, nil
}

// distinct returns each fault once: what stands in several dynamic scopes is compiled
// in each.
func distinct(faults []Fault) []Fault {
	seen := make(map[Fault]bool, len(faults))
	return slices.DeleteFunc(faults, func(f Fault) bool {
		again := seen[f]
		seen[f] = true
		return again
	})
}

// compile is the [profile].
func (f *fullProfile) compile(t *jsontree.Tree) *ir.Node {
	c := f.c
	c.full = f
	f.readIndex(t)
	if len(c.faults) > 0 || c.exceeded != nil {
		return nil
	}
	f.scopes = []scope{{}}
	root := c.schema(t, "")
	f.resolve()
	return root
}

// fullProfile is what the full profile adds to a compiler.
type fullProfile struct {
	c       *compiler
	opts    Options
	index   index
	nodes   map[nodeKey]*ir.Node
	scopes  []scope // see resource.go
	entered map[entry]int
	scope   int // of the schema in hand
	refs    []fullRef
	remarks []ir.Remark

	looksTwice bool // some schema has unevaluatedProperties or unevaluatedItems
}

// nodeKey tells compiled schemas apart: one place in the source is compiled once for
// each dynamic scope in which it is met.
type nodeKey struct {
	tree  *jsontree.Tree
	scope int
}

// maxNodes bounds how many schemas come out of one document. Dynamic scopes multiply
// its places, and every node takes about a kilobyte.
const maxNodes = 1 << 17

// maxRemarks bounds the remarks about one schema.
const maxRemarks = 100

// remark records what is odd, but no reason to refuse the schema.
func (f *fullProfile) remark(pointer, message string) {
	r := ir.Remark{Pointer: pointer, Message: message}
	if len(f.remarks) < maxRemarks && !slices.Contains(f.remarks, r) {
		f.remarks = append(f.remarks, r)
	}
}

// schema compiles the schema at a place in the document, or returns the node that
// was made of it before.
func (f *fullProfile) schema(t *jsontree.Tree) *ir.Node {
	at := f.index.places[t]
	outer := f.scope
	f.scope = f.enter(outer, at.resource)
	defer func() { f.scope = outer }()
	key := nodeKey{t, f.scope}
	if n := f.nodes[key]; n != nil {
		return n
	}
	if len(f.c.nodes) > 0 && (!f.c.spend(stepsOfSchema) || !f.c.spendAt(at.pointer, len(t.Members))) {
		return f.c.nodes[0]
	}
	n := f.newNode(at.pointer)
	n.Raw = t.Raw
	f.nodes[key] = n
	switch {
	case len(f.c.nodes) > min(maxNodes, memo.MaxNodes):
		f.c.fault(at.pointer, "the schema is too large", "")
	case t.Kind == jsontree.Boolean:
		n.Boolean = true
		if t.Raw[0] == 'f' {
			n.Never, n.Types = true, 0
		}
	case t.Kind != jsontree.Object:
		f.c.fault(at.pointer, "a schema must be an object or a boolean, not "+describe(t.Kind), "")
	default:
		f.object(n, t, at)
	}
	f.c.finish(n)
	return n
}

// newNode adds a node that accepts everything so far.
func (f *fullProfile) newNode(pointer string) *ir.Node {
	n := &ir.Node{ID: uint32(memo.FirstID + len(f.c.nodes)), Pointer: pointer, Types: ir.AnyType}
	f.c.nodes = append(f.c.nodes, n)
	return n
}

// object compiles a schema that is written as an object.
func (f *fullProfile) object(n *ir.Node, t *jsontree.Tree, at place) {
	dialect := at.resource.dialect
	if dialect == Draft07 && t.Get("$ref") != nil {
		f.onlyReference(n, t, at)
		return
	}
	alone := !slices.ContainsFunc(t.Members, func(m jsontree.Member) bool {
		return !isReference(m.Name) && knownBy(dialect, m.Name) && !assertsNothing(m.Name)
	})
	references := 0
	for _, m := range t.Members {
		if isReference(m.Name) && knownBy(dialect, m.Name) {
			references++
		}
	}
	for _, m := range t.Members {
		where := jsonptr.Child(at.pointer, m.Name)
		switch {
		case !knownBy(dialect, m.Name):
			f.unknown(m.Name, where)
		case isReference(m.Name):
			f.reference(n, m, where, at.resource, alone && references == 1)
		default:
			f.keyword(n, t, m, where, dialect)
		}
	}
	f.conditional(n, t, at.pointer)
	if f.opts.Nullable && n.TypeList != nil && isTrue(t.Get("nullable")) && n.Types&ir.TypeNull == 0 {
		n.Types |= ir.TypeNull
		n.TypeList = append(n.TypeList, "null")
	}
}

// onlyReference compiles a schema of draft-07 with $ref, which ignores what stands
// beside it (core section 8.3).
func (f *fullProfile) onlyReference(n *ir.Node, t *jsontree.Tree, at place) {
	for _, m := range t.Members {
		where := jsonptr.Child(at.pointer, m.Name)
		switch {
		case m.Name == "$ref":
			f.reference(n, m, where, at.resource, true)
		case assertsNothing(m.Name):
			f.annotation(n, m, where)
		case knownBy(Draft07, m.Name):
			f.remark(where, "draft-07 ignores "+m.Name+" beside $ref")
		}
	}
}

// reference compiles $ref, $dynamicRef or $recursiveRef. Alone, the node stands for
// its target; beside other keywords, the target is one more branch of allOf, which
// means the same.
func (f *fullProfile) reference(n *ir.Node, m jsontree.Member, where string, from *resource, alone bool) {
	text, ok := f.c.text(m.Value, where)
	if !ok {
		return
	}
	holder := n
	if !alone {
		holder = f.newNode(where)
		f.c.finish(holder)
		n.AllOf = withBranches(n.AllOf, holder)
	}
	holder.RefBy, holder.RefText = m.Name, text
	f.refs = append(f.refs, fullRef{holder, m.Name, text, where, from, f.scope})
}

// unknown remarks upon a keyword that the dialect does not know. Names that start
// with x- are extensions by agreement.
func (f *fullProfile) unknown(name, where string) {
	switch {
	case strings.HasPrefix(name, "x-"), name == "nullable" && f.opts.Nullable, len(f.remarks) == maxRemarks:
	default:
		message := "keyword " + truncate.Quote(name) + " is ignored"
		if hint := f.c.suggest(strings.TrimSpace(name), keywords()); hint != "" {
			message += "; " + hint
		}
		f.remark(where, message)
	}
}

// isTrue reports whether a value is present and true.
func isTrue(t *jsontree.Tree) bool { return t != nil && t.Kind == jsontree.Boolean && t.Raw[0] == 't' }

// format takes in a format: one that is not known, or not to be asserted, is an
// annotation.
func (f *fullProfile) format(rule *ir.StringRule, name string) {
	if f.opts.AssertFormats && format.Known(format.Name(name)) {
		rule.Format = format.Name(name)
	}
}
