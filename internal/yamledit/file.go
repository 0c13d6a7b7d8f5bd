package yamledit

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
)

// A File is the text of a YAML file that is edited.
type File struct{ lines []string } // each with its end

// Parse returns a file, which must be a mapping, or empty.
func Parse(text []byte) (*File, error) {
	f := &File{lines: strings.SplitAfter(string(text), "\n")}
	if last := len(f.lines) - 1; f.lines[last] == "" {
		f.lines = f.lines[:last]
	} else {
		f.lines[last] += "\n"
	}
	_, err := f.root()
	return f, err
}

// Bytes returns the text.
func (f *File) Bytes() []byte { return []byte(strings.Join(f.lines, "")) }

// root parses the present text.
func (f *File) root() (*yaml.Node, error) {
	root, err := parse(strings.Join(f.lines, ""))
	if err != nil {
		return nil, err
	}
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("yamledit: the file is no mapping")
	}
	return root, nil
}

// parse returns the value of a document; of an empty one an empty mapping.
func parse(text string) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, fmt.Errorf("yamledit: %w", err)
	}
	if len(doc.Content) == 0 {
		return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}, nil
	}
	return doc.Content[0], nil
}

// checked makes an edit and takes it back unless the file can be read with it, and has the key: lines
// that are put after a mapping in flow style, or behind the end of a document, are not part of it.
func (f *File) checked(key string, edit func() error) error {
	before := f.lines
	err := edit()
	if err == nil {
		var root *yaml.Node
		if root, err = f.root(); err == nil && Get(root, key) == nil {
			err = fmt.Errorf("yamledit: the file is laid out in a way that %s cannot be added to: write its keys on lines of their own", key)
		}
	}
	if err != nil {
		f.lines = before
	}
	return err
}

// A region is a run of lines: from the first one to the one before end.
type region struct{ from, end int }

// keyRegion returns the lines of a key of the top level with its value.
func (f *File) keyRegion(root *yaml.Node, key string) (r region, value *yaml.Node, ok bool) {
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value != key {
			continue
		}
		r = region{root.Content[i].Line - 1, len(f.lines)}
		if i+2 < len(root.Content) {
			r.end = root.Content[i+2].Line - 1
		}
		r.end = f.withoutTrail(r, root.Content[i].Column-1)
		return r, root.Content[i+1], true
	}
	return r, nil, false
}

// withoutTrail returns the end of a region without the blank lines and the comments at its end
// that belong to what follows: those that are indented no more than what it began with.
func (f *File) withoutTrail(r region, indent int) int {
	end := r.end
	for end > r.from+1 {
		line := strings.TrimRight(f.lines[end-1], " \r\n")
		text := strings.TrimLeft(line, " ")
		if text != "" && (text[0] != '#' || len(line)-len(text) > indent) && text != "---" && text != "..." {
			break
		}
		end--
	}
	return end
}

// splice puts text in the place of a region.
func (f *File) splice(r region, text string) {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	f.lines = append(append(append([]string{}, f.lines[:r.from]...), lines...), f.lines[r.end:]...)
}

// AppendItem adds an item to the list under a key of the top level, which is made if it is
// not there.
func (f *File) AppendItem(key string, item *yaml.Node) error {
	return f.checked(key, func() error { return f.appendItem(key, item) })
}

func (f *File) appendItem(key string, item *yaml.Node) error {
	root, err := f.root()
	if err != nil {
		return err
	}
	r, value, ok := f.keyRegion(root, key)
	list := &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{item}}
	switch {
	case !ok:
		return f.appendKey(key, list)
	case value.Kind != yaml.SequenceNode || value.Style&yaml.FlowStyle != 0 || len(value.Content) == 0:
		return f.rewrite(r, key, func(value *yaml.Node) *yaml.Node {
			value.Kind, value.Tag, value.Style, value.Value = yaml.SequenceNode, "!!seq", 0, ""
			value.Content = append(value.Content, item)
			return value
		})
	}
	text, err := render(list, value.Content[0].Column-1-len("- "))
	if err != nil {
		return err
	}
	f.splice(region{r.end, r.end}, text)
	return nil
}

// EditItem changes the item of a list under a key of the top level. The lines of other items
// keep their bytes.
func (f *File) EditItem(key string, index int, edit func(item *yaml.Node)) error {
	return f.checked(key, func() error { return f.editItem(key, index, edit) })
}

func (f *File) editItem(key string, index int, edit func(item *yaml.Node)) error {
	root, err := f.root()
	if err != nil {
		return err
	}
	r, value, ok := f.keyRegion(root, key)
	if !ok || value.Kind != yaml.SequenceNode || index >= len(value.Content) {
		return fmt.Errorf("yamledit: there is no item %d of %s", index, key)
	}
	if value.Style&yaml.FlowStyle != 0 {
		return f.rewrite(r, key, func(value *yaml.Node) *yaml.Node {
			edit(value.Content[index])
			return value
		})
	}
	first := value.Content[index]
	indent := first.Column - 1 - len("- ")
	item := region{first.Line - 1, r.end}
	if index+1 < len(value.Content) {
		item.end = value.Content[index+1].Line - 1
	}
	item.end = f.withoutTrail(item, indent)
	alone, err := parse(dedented(f.lines[item.from:item.end], indent))
	if err != nil {
		return err
	}
	if alone.Kind != yaml.SequenceNode || len(alone.Content) != 1 {
		return fmt.Errorf("yamledit: the item %d of %s does not stand on lines of its own", index, key)
	}
	edit(alone.Content[0])
	text, err := render(alone, indent)
	if err != nil {
		return err
	}
	f.splice(item, text)
	return nil
}

// SetEntry adds an entry to the mapping under a key of the top level, which is made if it
// is not there.
func (f *File) SetEntry(key, name string, entry *yaml.Node) error {
	return f.checked(key, func() error { return f.setEntry(key, name, entry) })
}

func (f *File) setEntry(key, name string, entry *yaml.Node) error {
	root, err := f.root()
	if err != nil {
		return err
	}
	r, value, ok := f.keyRegion(root, key)
	one := Map(name, entry)
	switch {
	case !ok:
		return f.appendKey(key, one)
	case value.Kind == yaml.MappingNode && value.Style&yaml.FlowStyle == 0 && len(value.Content) > 0 && Get(value, name) == nil:
		text, err := render(one, value.Content[0].Column-1)
		if err != nil {
			return err
		}
		f.splice(region{r.end, r.end}, text)
		return nil
	}
	return f.rewrite(r, key, func(value *yaml.Node) *yaml.Node {
		if value.Kind != yaml.MappingNode {
			return one
		}
		value.Style = 0
		Set(value, name, entry)
		return value
	})
}

// appendKey adds a key to the top level.
func (f *File) appendKey(key string, value *yaml.Node) error {
	text, err := render(Map(key, value), 0)
	if err != nil {
		return err
	}
	f.splice(region{len(f.lines), len(f.lines)}, text)
	return nil
}

// rewrite lays the lines of a key out anew.
func (f *File) rewrite(r region, key string, change func(value *yaml.Node) *yaml.Node) error {
	one, err := parse(strings.Join(f.lines[r.from:r.end], ""))
	if err != nil {
		return err
	}
	value := Get(one, key)
	if value == nil {
		return fmt.Errorf("yamledit: %s does not stand on lines of its own", key)
	}
	*value = *change(value)
	if value.LineComment != "" && value.Style&yaml.FlowStyle == 0 { // a block has no line for it
		head := one.Content[0]
		head.HeadComment = strings.TrimPrefix(head.HeadComment+"\n"+value.LineComment, "\n")
		value.LineComment = ""
	}
	text, err := render(one, 0)
	if err != nil {
		return err
	}
	f.splice(r, text)
	return nil
}

// dedented takes indentation off lines. Those that have less, such as the lines of a text in
// quotes, keep what they have.
func dedented(lines []string, indent int) string {
	var b strings.Builder
	for _, line := range lines {
		have := len(line) - len(strings.TrimLeft(line, " "))
		b.WriteString(line[min(have, indent):])
	}
	return b.String()
}

// render writes a node in block style, indented.
func render(n *yaml.Node, indent int) (string, error) {
	var b bytes.Buffer
	dumper, err := yaml.NewDumper(&b, yaml.WithV3Defaults(), yaml.WithIndent(2), yaml.WithCompactSeqIndent(true), yaml.WithLineWidth(-1))
	if err == nil {
		err = dumper.Dump(n)
	}
	if err == nil {
		err = dumper.Close()
	}
	if err != nil {
		return "", fmt.Errorf("yamledit: %w", err)
	}
	var out strings.Builder
	for line := range strings.Lines(b.String()) {
		if line != "\n" {
			out.WriteString(strings.Repeat(" ", max(indent, 0)))
		}
		out.WriteString(line)
	}
	return out.String(), nil
}
