package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

// quoted are the styles that make a scalar a string, whatever it looks like.
const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

// yaml parses the source as one YAML document. The builder, not the library,
// checks for duplicate keys and aliases: the library would stop at the first
// fault, and its limits count differently.
func (p *parser) yaml() error {
	loader, err := yaml.NewLoader(bytes.NewReader(p.src),
		yaml.WithUniqueKeys(false), // reported by addMember, all of them
		yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(2*MaxDepth), loaderlimits.AliasNone())))
	if err != nil {
		return p.syntax(err)
	}
	var doc, second yaml.Node
	if err := load(loader, &doc); err != nil {
		return p.syntax(err)
	}
	// io.EOF is the good case: there is no second document.
	if err := load(loader, &second); !errors.Is(err, io.EOF) {
		if err != nil {
			return p.syntax(err)
		}
		return p.fatal(second.Line, second.Column, "a second YAML document begins here: a file holds one", "split the file, or remove the `---`")
	}
	b := yamlBuilder{parser: p, open: make(map[*yaml.Node]bool)}
	p.root, err = b.build(doc.Content[0], 0)
	return err
}

// load reads the next document. go-yaml reports internal faults by panicking and
// recovers those it knows; any other must not crash the process.
func load(l *yaml.Loader, n *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the YAML parser failed: %v", r)
		}
	}()
	return l.Load(n)
}

// syntax is the error for source text that is not YAML.
func (p *parser) syntax(err error) error {
	var le *yaml.LoadError
	switch {
	case errors.Is(err, io.EOF):
		return p.fatal(1, 1, "the file is empty", "")
	case !errors.As(err, &le):
		return p.fatal(1, 1, "invalid YAML: "+err.Error(), "")
	}
	line, column := le.Mark.Line, le.Mark.Column
	if line == 0 { // the reader stage knows bytes only
		line, column = place(p.src, le.Mark.Index)
	}
	message := "invalid YAML: " + le.Message
	if le.ContextMsg != "" {
		message += " " + le.ContextMsg
	}
	return p.fatal(line, max(column, 1), message, "")
}

// yamlBuilder builds nodes from those of the YAML library.
type yamlBuilder struct {
	*parser
	open map[*yaml.Node]bool // the collections being built, against aliases to a parent
}

// build converts one node. An alias is replaced by a copy of what it refers to,
// so that a fault in the copy has the pointer of the place that uses it.
func (b *yamlBuilder) build(n *yaml.Node, depth int) (*node, error) {
	if err := b.count(n.Line, n.Column, depth); err != nil {
		return nil, err
	}
	switch n.Kind {
	case yaml.AliasNode:
		// An anchor may be used inside the value that it names, which no tree can
		// hold.
		if b.open[n.Alias] {
			b.fault(n, fmt.Sprintf("the alias *%s refers to a value that contains it", n.Value), "")
			return &node{kind: Null, line: n.Line, column: n.Column}, nil
		}
		return b.build(n.Alias, depth+1)
	case yaml.MappingNode, yaml.SequenceNode:
		b.open[n] = true
		defer delete(b.open, n)
		b.collectionTag(n)
		if n.Kind == yaml.MappingNode {
			return b.mapping(n, depth)
		}
		return b.sequence(n, depth)
	}
	return b.scalar(n), nil
}

// fault records a fault at a node; the path leads to it.
func (b *yamlBuilder) fault(n *yaml.Node, message, hint string) {
	b.addFault(n.Line, n.Column, message, hint)
}

// collectionTag reports tags other than those that mappings and lists have by
// default.
func (b *yamlBuilder) collectionTag(n *yaml.Node) {
	if tag := n.ShortTag(); tag != "!!map" && tag != "!!seq" {
		b.fault(n, fmt.Sprintf("the tag %s is not supported", tag), "remove the tag")
	}
}

// sequence builds a list.
func (b *yamlBuilder) sequence(n *yaml.Node, depth int) (*node, error) {
	out := &node{kind: List, line: n.Line, column: n.Column}
	for i, c := range n.Content {
		b.enter(strconv.Itoa(i))
		item, err := b.build(c, depth+1)
		b.leave()
		if err != nil {
			return nil, err
		}
		out.items = append(out.items, item)
	}
	return out, nil
}

// mapping builds a mapping. A member with a faulty key is left out, and its
// value is not read.
func (b *yamlBuilder) mapping(n *yaml.Node, depth int) (*node, error) {
	out := &node{kind: Map, line: n.Line, column: n.Column}
	seen := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, ok := b.key(n.Content[i])
		if !ok {
			continue
		}
		b.enter(k.name)
		value, err := b.build(n.Content[i+1], depth+1)
		if err == nil {
			b.addMember(out, seen, k, value)
		}
		b.leave()
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// key reads a mapping's key; ok is false, and a fault recorded, when the key
// is not a string.
func (b *yamlBuilder) key(n *yaml.Node) (k key, ok bool) {
	k = key{line: n.Line, column: n.Column}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch {
	case n.Kind != yaml.ScalarNode:
		b.fault(n, "a mapping's key must be a string", "")
		return k, false
	case n.Tag == "!!merge":
		b.fault(n, "merge keys (<<) are not supported", "write the keys out, or alias the whole value")
		return k, false
	}
	s := b.scalar(n)
	if s.kind != String {
		b.fault(n, fmt.Sprintf("a mapping's key must be a string, not %s", s.kind), "quote the key")
		return k, false
	}
	k.name = s.text
	return k, true
}

// scalar builds a scalar. It does not use the library's own resolution, which
// knows types of YAML 1.1 (0b11, dates) and reads long numbers as floats.
func (b *yamlBuilder) scalar(n *yaml.Node) *node {
	out := &node{kind: String, text: n.Value, line: n.Line, column: n.Column}
	tag := n.ShortTag()
	// Without a written tag the library's ShortTag is its own guess, by the rules
	// of YAML 1.1.
	if n.Style&yaml.TaggedStyle == 0 {
		if n.Style&quoted != 0 {
			return out
		}
		tag = ""
	}
	switch tag {
	// Dates have no JSON type; a tagged one is the string that it looks like.
	case "!!str", "!!timestamp":
		return out
	case "", "!!int", "!!float", "!!bool", "!!null":
	default:
		b.fault(n, fmt.Sprintf("the tag %s is not supported", tag), "write a quoted string without a tag")
		return out
	}
	kind, text, err := plain(n.Value)
	if err != nil {
		b.fault(n, err.Error(), "")
	}
	out.kind, out.text = kind, text
	if want := taggedKind(tag); want != Absent && kind != want && err == nil {
		b.fault(n, fmt.Sprintf("the tag %s needs %s", tag, want), "")
	}
	return out
}

// taggedKind returns the kind that a core tag requires, and Absent for others.
func taggedKind(tag string) Kind {
	switch tag {
	case "!!int", "!!float":
		return Number
	case "!!bool":
		return Bool
	case "!!null":
		return Null
	}
	return Absent
}
