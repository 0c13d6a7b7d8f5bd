package strictyaml

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// AppendJSON appends the value as compact JSON to dst: members in declared
// order, numbers as exact as they were written. An absent value appends
// nothing. [Value.Locate] leads from a pointer into that JSON back to the file.
func (v Value) AppendJSON(dst []byte) []byte {
	if v.node == nil {
		return dst
	}
	return appendNode(dst, v.node)
}

func appendNode(dst []byte, n *node) []byte {
	switch n.kind {
	case Map:
		dst = append(dst, '{')
		for i, item := range n.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendQuoted(dst, n.keys[i].name)
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
		return appendQuoted(dst, n.text)
	case Null:
		return append(dst, "null"...)
	}
	return append(dst, n.text...)
}

// appendQuoted writes a JSON string. Plain text, which is nearly all, takes
// the short way.
func appendQuoted(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return appendEscaped(dst, s)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

func appendEscaped(dst []byte, s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string in memory cannot fail
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}
