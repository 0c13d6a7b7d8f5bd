package yamledit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v4"
)

// FromJSON returns a JSON value as a node in block style. Members keep their order, and
// numbers their digits.
func FromJSON(source []byte) (*yaml.Node, error) {
	dec := json.NewDecoder(bytes.NewReader(source))
	dec.UseNumber()
	n, err := next(dec)
	if err != nil {
		return nil, fmt.Errorf("yamledit: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("yamledit: more than one JSON value")
	}
	return n, nil
}

func next(dec *json.Decoder) (*yaml.Node, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		return collection(dec, t)
	case string:
		return Text(t), nil
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: t.String()}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: fmt.Sprint(t)}, nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
}

// collection reads the rest of an object or an array. An empty one, and a list of scalars, is
// written on one line.
func collection(dec *json.Decoder, open json.Delim) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle}
	if open == '{' {
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
	}
	for dec.More() {
		child, err := next(dec) // of an object by turns a name and a value
		if err != nil {
			return nil, err
		}
		if child.Kind != yaml.ScalarNode || n.Kind == yaml.MappingNode {
			n.Style = 0
		}
		n.Content = append(n.Content, child)
	}
	_, err := dec.Token()
	return n, err
}

// Text returns a node of a text.
func Text(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }

// Word returns a node of what is no text, such as true.
func Word(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: s} }

// Map returns a mapping of names and nodes by turns.
func Map(members ...any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for i := 0; i+1 < len(members); i += 2 {
		name, _ := members[i].(string)
		value, _ := members[i+1].(*yaml.Node)
		n.Content = append(n.Content, Text(name), value)
	}
	return n
}

// Set sets an entry of a mapping, at its place or at the end; nil removes it.
func Set(mapping *yaml.Node, name string, value *yaml.Node) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value != name {
			continue
		}
		if value == nil {
			mapping.Content = append(mapping.Content[:i], mapping.Content[i+2:]...)
			return
		}
		old := mapping.Content[i+1]
		value.LineComment, value.FootComment = old.LineComment, old.FootComment
		mapping.Content[i+1] = value
		return
	}
	if value != nil {
		mapping.Content = append(mapping.Content, Text(name), value)
	}
}

// Get returns an entry of a mapping, or nil.
func Get(mapping *yaml.Node, name string) *yaml.Node {
	for i := 0; mapping != nil && mapping.Kind == yaml.MappingNode && i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			return mapping.Content[i+1]
		}
	}
	return nil
}
