package schema

import (
	"github.com/agentd/agentd/internal/ijson"
)

// kind is the JSON type of a value. Integers are numbers here: whether a number
// has a fraction takes a look at its value.
type kind uint8

// The kinds, scalars first, in the order of the bits of typeSet.
const (
	kindNull kind = iota
	kindBoolean
	kindNumber
	kindString
	kindArray
	kindObject
)

// tree is a parsed JSON value that remembers the order of its members, for the
// reports of faults and for generated code. Only schemas are parsed, and values
// that the prover reasons about; payloads are judged as bytes.
type tree struct {
	kind    kind
	raw     []byte   // the value's text
	text    string   // the characters of a string
	items   []*tree  // the elements of an array
	members []member // the members of an object, in the order of the text
}

// member is one member of an object. ijson has refused repeated names.
type member struct {
	name  string
	value *tree
}

// get returns the member of an object, or nil.
func (t *tree) get(name string) *tree {
	for i := range t.members {
		if t.members[i].name == name {
			return t.members[i].value
		}
	}
	return nil
}

// parseTree parses one strict JSON text. It is checked as a whole first, so that
// building the tree meets no errors.
func parseTree(src []byte) (*tree, error) {
	if err := ijson.Check(src, ijson.DefaultMaxDepth); err != nil {
		return nil, err
	}
	t, _ := buildTree(src, ijson.SkipSpace(src, 0))
	return t, nil
}

// buildTree builds the value at i of a text that has been checked, and returns
// the offset after it. raw is a view of src and keeps it alive.
func buildTree(src []byte, i int) (*tree, int) {
	t := &tree{kind: kindOf(src[i])}
	var end int
	switch t.kind {
	case kindObject:
		end = t.buildObject(src, i)
	case kindArray:
		end = t.buildArray(src, i)
	case kindString:
		t.text, end = stringAt(src, i)
	case kindNumber:
		end, _, _ = ijson.ScanNumber(src, i)
	default:
		end, _ = ijson.ScanLiteral(src, i)
	}
	t.raw = src[i:end]
	return t, end
}

// buildObject adds the members of the object at i and returns its end.
func (t *tree) buildObject(src []byte, i int) int {
	for i = ijson.SkipSpace(src, i+1); src[i] != '}'; {
		var m member
		m.name, i = stringAt(src, i)
		i = ijson.SkipSpace(src, ijson.SkipSpace(src, i)+1)
		m.value, i = buildTree(src, i)
		t.members = append(t.members, m)
		if i = ijson.SkipSpace(src, i); src[i] == ',' {
			i = ijson.SkipSpace(src, i+1)
		}
	}
	return i + 1
}

// buildArray adds the elements of the array at i and returns its end.
func (t *tree) buildArray(src []byte, i int) int {
	for i = ijson.SkipSpace(src, i+1); src[i] != ']'; {
		var item *tree
		item, i = buildTree(src, i)
		t.items = append(t.items, item)
		if i = ijson.SkipSpace(src, i); src[i] == ',' {
			i = ijson.SkipSpace(src, i+1)
		}
	}
	return i + 1
}

// stringAt returns the characters of the string at i, and its end.
func stringAt(src []byte, i int) (string, int) {
	end, _, _ := ijson.ScanString(src, i)
	return string(ijson.AppendUnquoted(nil, src[i+1:end-1])), end
}

// kindOf tells the type of a value by its first byte. A byte that starts no
// value counts as null, where the scan of the literal refuses it.
func kindOf(c byte) kind {
	switch c {
	case '{':
		return kindObject
	case '[':
		return kindArray
	case '"':
		return kindString
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return kindNumber
	case 't', 'f':
		return kindBoolean
	}
	return kindNull
}
