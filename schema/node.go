package schema

import (
	"regexp/syntax"
)

// typeSet is a set of the types that the keyword type can name.
type typeSet uint8

// The types, in the order of kind, so that the bit of a kind is a shift away.
const (
	typeNull typeSet = 1 << iota
	typeBoolean
	typeNumber
	typeString
	typeArray
	typeObject
	typeInteger // a number without fraction; implied by typeNumber

	anyType = typeNull | typeBoolean | typeNumber | typeString | typeArray | typeObject
)

// compiledSchema is a whole schema in the form that validation, proofs, samples
// and views share.
type compiledSchema struct {
	root     *node
	nodes    []*node  // every schema inside, the root first
	source   []byte   // the JSON that was compiled
	literals interner // the values of const and enum; only read
	memoise  bool     // judge through a memo, see needsMemo
}

// formKey opens the compiled form of a schema to the packages below schema. They
// alone can name the type, and its field keeps others from passing a literal.
type formKey struct{ _ struct{} }

// node is one compiled schema. It never changes once Compile has returned, so
// that any number of goroutines can read it. Validator, prover, samples and the
// public view all work on nodes: there is no second opinion on what a schema
// means.
type node struct {
	id      uint32
	pointer string // where the schema stands in the source, RFC 6901

	// ref is set for {"$ref": …}, which then stands for its target and has no
	// assertions of its own. refName is the name in definitions, "" for "#".
	ref     *node
	refName string
	final   *node // where a chain of $ref ends; the node itself without $ref

	boolean bool // the schema is written true or false
	never   bool // the schema is false; types then is empty
	any     bool // the schema accepts every value

	// types holds the kinds of value that pass the keyword type. With
	// typeInteger and without typeNumber, numbers must be integers.
	types    typeSet
	typeList []string // as written; nil where type is absent

	constant *enumRule // const, as an enum of one
	enum     *enumRule
	str      *stringRule
	num      *numberRule
	arr      *arrayRule
	obj      *objectRule

	oneOf, anyOf, allOf *combinator
	not                 *node
	notTo               *node // the target of not

	// pure is set where only combinators assert anything.
	pure bool
	// shared is set where more than one schema leads here.
	shared bool
	// heavy is set where the combinators take many steps for a single value.
	heavy bool
	// combines is set where any combinator is present.
	combines bool

	notes annotations
}

// annotations are the keywords that assert nothing.
type annotations struct {
	title, description string
	fallback           []byte // default
	examples           [][]byte
	definitions        []definition
}

// definition is one entry of definitions.
type definition struct {
	name string
	node *node
}

// target is the schema that decides in place of n: n itself, or where its
// $ref leads. It is known once Compile has returned.
func (n *node) target() *node { return n.final }

// literal is a value written in a schema.
type literal struct {
	raw  []byte // compact JSON, as written
	kind kind
	id   uint32 // in Schema.literals
	text string // the characters of a string
}

// enumRule is a set of values of which one must match. The strings are held a
// second time as text, since most enums are of strings.
type enumRule struct {
	values  []literal // as written
	kinds   typeSet   // the kinds of value that occur
	small   []string  // the strings, while there are few
	strings map[string]struct{}
	ids     map[uint32]struct{} // all the values, by number
}

// stringRule holds the assertions on strings. Lengths count code points; an
// absent bound is 0 or maxLength's zero value unbounded.
type stringRule struct {
	min, max int
	pattern  *pattern
	format   formatName
}

// pattern is an ECMA-262 pattern and its translation. The validator runs dfa or
// parallel; the prover builds automata of its own from re2, which can be
// complemented and intersected. Tests hold both to each other.
type pattern struct {
	source string         // as written
	re2    string         // the RE2 spelling of the same language
	tree   *syntax.Regexp // the parse of re2, not simplified
	dfa    *dfa           // decides; nil where it would be too large
	// parallel decides in place of dfa.
	parallel *parallel
}

// bound is a numeric limit. Messages show it as written.
type bound struct {
	raw     string // as written
	decimal decimal
	small   int64 // the value, where isSmall
	isSmall bool
}

// numberRule holds the assertions on numbers; absent ones are nil.
type numberRule struct {
	min, max, above, below *bound // minimum, maximum, exclusiveMinimum, exclusiveMaximum
	// low and high are the inclusive integer range, where all bounds are
	// integers of modest size: then fast holds and integers need no more.
	low, high int64
	fast      bool
}

// arrayRule holds the assertions on arrays. items is nil where it is absent.
type arrayRule struct {
	items    *node
	to       *node // the target of items; nil where anything goes
	min, max int
	unique   bool
}

// objectRule holds the assertions on objects.
type objectRule struct {
	// props holds the declared properties in the order of the source, then
	// the required names that are not among them.
	props    []property
	declared int // how many of props stand in properties
	required []string
	mask     uint64 // the required ones among props, where there are at most 64
	index    nameIndex
	// additional is nil where it is absent.
	additional *node
	closed     bool  // additionalProperties is false
	rest       *node // target of additional; nil where anything goes
}

// property is a name that properties declares or required lists.
type property struct {
	name     string
	node     *node // nil for a required name that properties does not declare
	to       *node // what judges the value: target of node, or of additional; nil for anything
	required bool
	spelled  string // name as most payloads write it, with quotes and colon; "" where it needs escapes
}

// combinator holds the branches of oneOf, anyOf or allOf: as written, for the
// view, and with references followed, for the validator.
type combinator struct {
	branches []*node
	to       []*node // their targets
	dispatch *dispatch
}

// dispatch picks the only branch that an object can match by the value of one
// of its properties.
type dispatch struct {
	property string
	branch   map[string]int // by the value of the property
}

// unbounded stands for an absent maximum length.
const unbounded = int(^uint(0) >> 1)
