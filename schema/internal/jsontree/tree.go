package jsontree

import "github.com/agentd/agentd/internal/ijson"

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

// Parse parses one strict JSON text. It is checked as a whole first, so that
// building the tree meets no errors.
func Parse(src []byte) (*Tree, error) {
	if err := ijson.Check(src, ijson.DefaultMaxDepth); err != nil {
		return nil, err
	}
	t, _ := Build(src, ijson.SkipSpace(src, 0))
	return t, nil
}

// Build builds the value at i of a text that has been checked, and returns
// the offset after it. raw is a view of src and keeps it alive.
func Build(src []byte, i int) (*Tree, int) {
	t := &Tree{Kind: KindOf(src[i])}
	var end int
	switch t.Kind {
	case Object:
		end = t.buildObject(src, i)
	case Array:
		end = t.buildArray(src, i)
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

// buildObject adds the members of the object at i and returns its end.
func (t *Tree) buildObject(src []byte, i int) int {
	for i = ijson.SkipSpace(src, i+1); src[i] != '}'; {
		var m Member
		m.Name, i = stringAt(src, i)
		i = ijson.SkipSpace(src, ijson.SkipSpace(src, i)+1)
		m.Value, i = Build(src, i)
		t.Members = append(t.Members, m)
		if i = ijson.SkipSpace(src, i); src[i] == ',' {
			i = ijson.SkipSpace(src, i+1)
		}
	}
	return i + 1
}

// buildArray adds the elements of the array at i and returns its end.
func (t *Tree) buildArray(src []byte, i int) int {
	for i = ijson.SkipSpace(src, i+1); src[i] != ']'; {
		var item *Tree
		item, i = Build(src, i)
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
