package jsontree

import (
	"errors"

	"github.com/agentd/agentd/internal/ijson"
)

// Tree is a parsed JSON value that remembers the order of its members, for the
// reports of faults and for generated code. Only schemas are parsed, and values
// that the prover reasons about; payloads are judged as bytes.
type Tree struct {
	Kind    Kind
	Raw     []byte   // the value's text
	Text    string   // the characters of a string
	Items   []*Tree  // the elements of an array
	Members []Member // the members of an object, in the order of the text
}

// Member is one member of an object. ijson has refused repeated names.
type Member struct {
	Name  string
	Value *Tree
}

// Get returns the member of an object, or nil.
func (t *Tree) Get(name string) *Tree {
	for i := range t.Members {
		if t.Members[i].Name == name {
			return t.Members[i].Value
		}
	}
	return nil
}

// ErrTooLarge is returned by [Parse] for a tree of more values than there may be.
var ErrTooLarge = errors.New("too many values")

// Parse parses one strict JSON text. It is checked as a whole first, so that
// building the tree meets no errors but this: a value takes many times the room of its
// text, and more is called for each, before it is built, until it returns false.
func Parse(src []byte, more func() bool) (*Tree, error) {
	if err := ijson.Check(src, ijson.DefaultMaxDepth); err != nil {
		return nil, err
	}
	b := builder{src: src, more: more}
	t, _ := b.value(ijson.SkipSpace(src, 0))
	if b.cut {
		return nil, ErrTooLarge
	}
	return t, nil
}

// Build builds the value at i of a text that has been checked, and returns
// the offset after it. raw is a view of src and keeps it alive.
func Build(src []byte, i int) (*Tree, int) {
	b := builder{src: src}
	return b.value(i)
}

// builder builds the tree of a text.
type builder struct {
	src  []byte
	more func() bool // nil allows any number of values
	cut  bool        // more has returned false; what has been built is of no use
}

// value builds the value at i and returns the offset after it.
func (b *builder) value(i int) (*Tree, int) {
	src := b.src
	t := &Tree{Kind: KindOf(src[i])}
	if b.more != nil && !b.cut {
		b.cut = !b.more()
	}
	var end int
	switch t.Kind {
	case Object:
		end = b.object(t, i)
	case Array:
		end = b.array(t, i)
	case String:
		t.Text, end = stringAt(src, i)
	case Number:
		end, _, _ = ijson.ScanNumber(src, i)
	default:
		end, _ = ijson.ScanLiteral(src, i)
	}
	t.Raw = src[i:end]
	return t, end
}

// object adds the members of the object at i and returns its end.
func (b *builder) object(t *Tree, i int) int {
	src := b.src
	for i = ijson.SkipSpace(src, i+1); src[i] != '}' && !b.cut; {
		var m Member
		m.Name, i = stringAt(src, i)
		i = ijson.SkipSpace(src, ijson.SkipSpace(src, i)+1)
		m.Value, i = b.value(i)
		t.Members = append(t.Members, m)
		if i = ijson.SkipSpace(src, i); src[i] == ',' {
			i = ijson.SkipSpace(src, i+1)
		}
	}
	return i + 1
}

// array adds the elements of the array at i and returns its end.
func (b *builder) array(t *Tree, i int) int {
	src := b.src
	for i = ijson.SkipSpace(src, i+1); src[i] != ']' && !b.cut; {
		var item *Tree
		item, i = b.value(i)
		t.Items = append(t.Items, item)
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
