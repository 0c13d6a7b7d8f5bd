package strictyaml

import "github.com/agentd/agentd/internal/ijson"

// AppendJSON appends the value as compact JSON to dst: members in declared
// order, numbers as exact as they were written. An absent value appends
// nothing. [Value.Locate] leads from a pointer into that JSON back to the file.
func (v Value) AppendJSON(dst []byte) []byte {
	if v.key != nil {
		v.key.Raw = true
	}
	if v.node == nil {
		return dst
	}
	return appendNode(dst, v.node)
}

// appendNode cannot recurse without end: the parser bounds depth and has expanded
// aliases into a tree.
func appendNode(dst []byte, n *node) []byte {
	switch n.kind {
	case Map:
		dst = append(dst, '{')
		for i, item := range n.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = ijson.AppendQuoted(dst, n.keys[i].name)
			dst = append(dst, ':')
			dst = appendNode(dst, item)
		}
		return append(dst, '}')
	case List:
		dst = append(dst, '[')
		for i, item := range n.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendNode(dst, item)
		}
		return append(dst, ']')
	case String:
		return ijson.AppendQuoted(dst, n.text)
	case Null:
		return append(dst, "null"...)
	}
	return append(dst, n.text...)
}
