package projection

import (
	"encoding/json"
	"iter"

	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/schema"
)

// kind is what the projection has made of a value.
type kind uint8

const (
	same     kind = iota // the value is written as it is
	text                 // a string with the JSON text of the value
	object               // an object: members, and rest for those that are not declared
	array                // an array: rest for its elements
	branched             // one of branches
	wrapped              // the one member of an object: rest
)

// plan is the way back from what a model wrote to the value that it means. The plan of a
// schema that contains itself contains itself, too.
type plan struct {
	kind     kind
	members  map[string]memberPlan // by the name that the model knows
	rest     *plan
	branches []*branch
}

// memberPlan is the plan of a declared member.
type memberPlan struct {
	name  string // in the schema
	value *plan
	// absent says that null means that the member is not there.
	absent bool
}

// branch is one of those that a value may follow. The first that fits is followed.
type branch struct {
	json []byte
	fits *schema.Schema
	plan *plan
}

// needed reports whether anything of an object is written in another way.
func (p *plan) needed() bool {
	for sent, m := range p.members {
		if m.value != nil || m.absent || m.name != sent {
			return true
		}
	}
	return p.rest != nil
}

// maxDepth bounds the nesting of arguments, as that of payloads is bounded.
const maxDepth = ijson.DefaultMaxDepth

// Restore returns the arguments that a model means by what it wrote: without the nulls
// that stand for absent members, with values in place of their text, and with the names
// of members that the schema has. What does not fit the projection is left as it is, for
// the schema to judge; so is what is no JSON.
func (p *Projected) Restore(args json.RawMessage) json.RawMessage {
	if p.plan == nil || ijson.Check(args, maxDepth) != nil {
		return args
	}
	at := ijson.SkipSpace(args, 0)
	return p.plan.restore(args[at:ijson.SkipValid(args, at)])
}

// restore rewrites one value, which is valid JSON without white space around it.
func (p *plan) restore(raw []byte) []byte {
	if p == nil {
		return raw
	}
	switch p.kind {
	case text:
		return fromText(raw)
	case object:
		return p.restoreObject(raw)
	case array:
		return p.restoreArray(raw)
	case branched:
		for _, b := range p.branches {
			if b.fits.Valid(raw) {
				return b.plan.restore(raw)
			}
		}
	case wrapped:
		return p.unwrap(raw)
	}
	return raw
}

// fromText returns the value that a string is the text of. Another string is itself:
// models leave out the second pair of quotes.
func fromText(raw []byte) []byte {
	if raw[0] != '"' {
		return raw
	}
	inner := ijson.AppendUnquoted(nil, raw[1:len(raw)-1])
	if ijson.Check(inner, maxDepth) != nil {
		return raw
	}
	at := ijson.SkipSpace(inner, 0)
	return inner[at:ijson.SkipValid(inner, at)]
}

func (p *plan) restoreObject(raw []byte) []byte {
	if raw[0] != '{' {
		return raw
	}
	var fields []field
	for sent, value := range membersOf(raw) {
		m, declared := p.members[sent]
		switch {
		case !declared:
			fields = append(fields, field{sent, p.rest.restore(value)})
		case m.absent && string(value) == "null":
		default:
			fields = append(fields, field{m.name, m.value.restore(value)})
		}
	}
	return writeObject(fields)
}

func (p *plan) restoreArray(raw []byte) []byte {
	if raw[0] != '[' {
		return raw
	}
	var all [][]byte
	for _, element := range elementsOf(raw) {
		all = append(all, p.rest.restore(element))
	}
	return writeArray(all)
}

// unwrap returns the value of the wrapper. An object without it may be the arguments
// themselves.
func (p *plan) unwrap(raw []byte) []byte {
	if raw[0] != '{' {
		return raw
	}
	count := 0
	var inner []byte
	for name, value := range membersOf(raw) {
		if count++; name == wrapper {
			inner = value
		}
	}
	if inner == nil || count != 1 {
		return raw
	}
	return p.rest.restore(inner)
}

// membersOf iterates over the members of an object in order, with their names unescaped.
func membersOf(raw []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for i, empty := ijson.Enter(raw, 0); !empty; {
			end, _, value, _ := ijson.ScanName(raw, i) // Restore has checked the whole
			after := ijson.SkipValid(raw, value)
			if !yield(string(ijson.AppendUnquoted(nil, raw[i+1:end-1])), raw[value:after]) {
				return
			}
			next, more, _ := ijson.Next(raw, after, '}')
			i, empty = next, !more
		}
	}
}

// elementsOf returns the elements of an array.
func elementsOf(raw []byte) (all [][]byte) {
	for i, empty := ijson.Enter(raw, 0); !empty; {
		end := ijson.SkipValid(raw, i)
		all = append(all, raw[i:end])
		next, more, _ := ijson.Next(raw, end, ']') // Restore has checked the whole
		i, empty = next, !more
	}
	return all
}
