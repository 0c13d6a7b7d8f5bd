package ir

import (
	"math"

	"github.com/agentd/agentd/schema/internal/decimal"
	"github.com/agentd/agentd/schema/internal/format"
	"github.com/agentd/agentd/schema/internal/identity"
	"github.com/agentd/agentd/schema/internal/jsontree"
	"github.com/agentd/agentd/schema/internal/pattern"
)

// TypeSet is a set of the types that the keyword type can name.
type TypeSet uint8

// The types, in the order of kind, so that the bit of a kind is a shift away.
const (
	TypeNull TypeSet = 1 << iota
	TypeBoolean
	TypeNumber
	TypeString
	TypeArray
	TypeObject
	TypeInteger // a number without fraction; implied by TypeNumber

	AnyType = TypeNull | TypeBoolean | TypeNumber | TypeString | TypeArray | TypeObject
)

// TypeOf returns a kind as a type, with number for every number.
func TypeOf(k jsontree.Kind) TypeSet { return TypeNull << k }

// Schema is a whole schema in the form that validation, proofs, samples
// and views share.
type Schema struct {
	Root     *Node
	Nodes    []*Node        // every schema inside, the root first
	Source   []byte         // the JSON that was compiled
	Literals identity.Table // the values of const and enum; only read
	Memoise  bool           // judge through a memo: without, some payloads would take too long
	Full     bool           // compiled by the full profile
	Remarks  []Remark       // what an author may want to know of; only in the full profile
}

// Remark is something odd in a schema that is no reason to refuse it.
type Remark struct{ Pointer, Message string }

// Key opens the compiled form of a schema to the packages below schema. They
// alone can name the type, and its field keeps others from passing a literal.
type Key struct{ _ struct{} }

// Node is one compiled schema. It never changes once it is compiled, so
// that any number of goroutines can read it. Validator, prover, samples and the
// public view all work on nodes: there is no second opinion on what a schema
// means.
type Node struct {
	ID      uint32
	Pointer string // where the schema stands in the source, RFC 6901
	Raw     []byte // the schema as written; nil where it is part of a keyword's value

	// Ref is set for {"$ref": …}, which then stands for its target and has no
	// assertions of its own. RefName is the name in definitions, "" for "#".
	// RefBy is the keyword, and RefText its value.
	Ref            *Node
	RefName        string
	RefBy, RefText string
	Final          *Node // where a chain of $ref ends; the node itself without $ref

	Boolean bool // the schema is written true or false
	Never   bool // the schema is false; Types then is empty
	Any     bool // the schema accepts every value

	// Types holds the kinds of value that pass the keyword type. With
	// TypeInteger and without TypeNumber, numbers must be integers.
	Types    TypeSet
	TypeList []string // as written; nil where type is absent

	Constant *EnumRule // const, as an enum of one
	Enum     *EnumRule
	Str      *StringRule
	Num      *NumberRule
	Arr      *ArrayRule
	Obj      *ObjectRule

	OneOf, AnyOf, AllOf *Combinator
	Not                 *Node
	NotTo               *Node // the target of not
	Beyond              *Beyond

	// Pure is set where only combinators assert anything.
	Pure bool
	// Shared is set where more than one schema leads here.
	Shared bool
	// Heavy is set where the combinators take many steps for a single value.
	Heavy bool
	// Combines is set where any combinator is present.
	Combines bool

	Notes Annotations
}

// Annotations are the keywords that assert nothing.
type Annotations struct {
	Title, Description string
	Fallback           []byte // default
	Examples           [][]byte
	Format             string // as written, whether it is asserted or not
	Definitions        []Definition
}

// Definition is one entry of definitions.
type Definition struct {
	Name string
	Node *Node
}

// Target is the schema that decides in place of n: n itself, or where its
// $ref leads. It is known once all is compiled.
func (n *Node) Target() *Node { return n.Final }

// Literal is a value written in a schema.
type Literal struct {
	Raw  []byte // compact JSON, as written
	Kind jsontree.Kind
	ID   uint32 // in Schema.Literals
	Text string // the characters of a string
}

// EnumRule is a set of values of which one must match. The strings are held a
// second time as text, since most enums are of strings.
type EnumRule struct {
	Values  []Literal // as written
	Kinds   TypeSet   // the kinds of value that occur
	Small   []string  // the strings, while there are few
	Strings map[string]struct{}
	IDs     map[uint32]struct{} // all the values, by number

	// Trees are the values but strings, if they are few and small: comparing them one by
	// one is faster then than to find out the number of a value. Otherwise it is nil.
	Trees []*jsontree.Tree
}

// Bounds of [EnumRule].Trees. A value is compared with all of them, and each of its
// members with all of one.
const (
	fewTrees   = 4
	fewMembers = 16
	shortText  = 1 << 12 // bytes of a value
)

// Add takes in one more value that may match.
func (r *EnumRule) Add(l Literal) {
	r.Values = append(r.Values, l)
	r.Kinds |= TypeOf(l.Kind)
	r.IDs[l.ID] = struct{}{}
}

// Index prepares the look-up of strings: a map for many of them, and a list for up
// to eight, which is faster to compare than to hash.
func (r *EnumRule) Index() {
	count := 0
	for _, l := range r.Values {
		if l.Kind == jsontree.String {
			count++
		}
	}
	if len(r.Values)-count <= fewTrees {
		r.plant()
	}
	if count > 8 {
		r.Strings = make(map[string]struct{}, count)
	}
	for _, l := range r.Values {
		switch {
		case l.Kind != jsontree.String:
		case r.Strings != nil:
			r.Strings[l.Text] = struct{}{}
		default:
			r.Small = append(r.Small, l.Text)
		}
	}
}

// plant fills Trees if they are small.
func (r *EnumRule) plant() {
	var trees []*jsontree.Tree
	for _, l := range r.Values {
		if l.Kind == jsontree.String {
			continue
		}
		if len(l.Raw) > shortText {
			return
		}
		tree, _ := jsontree.Build(l.Raw, 0)
		if !isSmall(tree) {
			return
		}
		trees = append(trees, tree)
	}
	r.Trees = trees
}

// isSmall reports whether no object inside has more than a few members.
func isSmall(t *jsontree.Tree) bool {
	if len(t.Members) > fewMembers {
		return false
	}
	for _, item := range t.Items {
		if !isSmall(item) {
			return false
		}
	}
	for _, m := range t.Members {
		if !isSmall(m.Value) {
			return false
		}
	}
	return true
}

// StringRule holds the assertions on strings. Lengths count code points; an
// absent bound is 0 or [Unbounded].
type StringRule struct {
	Min, Max int
	Pattern  *pattern.Pattern
	Format   format.Name
}

// Bound is a numeric limit. Messages show it as written.
type Bound struct {
	Raw     string // as written
	Decimal decimal.Decimal
	Small   int64 // the value, where IsSmall
	IsSmall bool
}

// NumberRule holds the assertions on numbers; absent ones are nil.
type NumberRule struct {
	Min, Max, Above, Below *Bound // minimum, maximum, exclusiveMinimum, exclusiveMaximum
	// Low and High are the inclusive integer range, where all bounds are
	// integers of modest size: then Fast holds and integers need no more.
	Low, High int64
	Fast      bool
	Multiple  *Multiple // multipleOf
}

// ArrayRule holds the assertions on arrays. Items is nil where it is absent.
type ArrayRule struct {
	Items    *Node
	To       *Node // the target of items; nil where anything goes
	Min, Max int
	Unique   bool
	Full     *FullArray // nil in the subset
}

// ObjectRule holds the assertions on objects.
type ObjectRule struct {
	// Props holds the declared properties in the order of the source, then
	// the required names that are not among them.
	Props    []Property
	Declared int // how many of Props stand in properties
	Required []string
	Mask     uint64 // the required ones among Props, where there are at most 64
	Index    Names
	// Additional is nil where it is absent.
	Additional *Node
	Closed     bool        // additionalProperties is false
	Rest       *Node       // target of Additional; nil where anything goes
	Full       *FullObject // nil in the subset
}

// Property is a name that properties declares or required lists.
type Property struct {
	Name     string
	Node     *Node // nil for a required name that properties does not declare
	To       *Node // what judges the value: target of Node, or of Additional; nil for anything
	Required bool
	Spelled  string // name as most payloads write it, with quotes and colon; "" where it needs escapes
}

// Combinator holds the branches of oneOf, anyOf or allOf: as written, for the
// view, and with references followed, for the validator.
type Combinator struct {
	Branches []*Node
	To       []*Node // their targets
	Dispatch *Dispatch
}

// Dispatch picks the only branch that an object can match by the value of one
// of its properties.
type Dispatch struct {
	Property string
	Branch   map[string]int // by the value of the property
}

// Unbounded stands for an absent maximum of a length or count.
const Unbounded = math.MaxInt

// Order compares a number with the bound: -1, 0 or 1. An absent bound equals every
// number, which suits inclusive bounds; exclusive ones are tested for nil first.
func (b *Bound) Order(d decimal.Decimal) int {
	if b == nil {
		return 0
	}
	return d.Compare(b.Decimal)
}
