package mcpinstall

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/agentd/agentd/internal/ijson"
)

// editJSON sets the settings of an object inside of JSON that may have comments and
// trailing commas. All other bytes stay.
func editJSON(src []byte, path []string, all []setting, obsolete []string, replace bool) ([]byte, error) {
	if len(bytes.TrimSpace(src)) == 0 {
		src = []byte("{\n}\n")
	}
	d := &jsonDoc{src: src}
	entry, err := d.find(path)
	if err != nil {
		return nil, err
	}
	if entry != nil && !ours(d.src[entry.value:entry.end], all) {
		if !replace {
			return nil, another(path[len(path)-1])
		}
		if err := d.remove(path); err != nil {
			return nil, err
		}
	}
	for _, key := range obsolete {
		if err := d.remove(append(slices.Clone(path), key)); err != nil {
			return nil, err
		}
	}
	if err := d.set(path, all); err != nil {
		return nil, err
	}
	if _, err := d.root(); err != nil { // what was written can be read
		return nil, err
	}
	return d.src, nil
}

// ours reports whether an entry, in JSON or TOML, is one that agentd has written for this
// fleet: it starts `agentd mcp`, or has the address that is to be written.
func ours(entry []byte, all []setting) bool {
	for _, s := range all {
		switch value := s.value.(type) {
		case string:
			if s.key == "url" && bytes.Contains(entry, []byte(quote(value))) {
				return true
			}
		case []string:
			// Fleets may have agents of one id, and files of a user are for all fleets.
			at := slices.Index(value, "--fleet") + 1
			if at > 0 && at < len(value) && !bytes.Contains(entry, []byte(quote(value[at]))) {
				return false
			}
		}
	}
	return bytes.Contains(entry, []byte(`"mcp"`)) && bytes.Contains(entry, []byte(`"--agent"`))
}

// jsonDoc is a file that is being changed. Each change reads it anew: it is small.
type jsonDoc struct{ src []byte }

// jsonObject is an object: where its braces are, and its members in order.
type jsonObject struct {
	open, close int
	members     []jsonMember
}

// jsonMember is a member: where its key, its value and the comma behind it are; comma is
// -1 where there is none.
type jsonMember struct {
	name            string
	key, value, end int
	comma           int
	object          *jsonObject // if the value is one
}

func (o *jsonObject) member(name string) *jsonMember {
	at := slices.IndexFunc(o.members, func(m jsonMember) bool { return m.name == name })
	if at < 0 {
		return nil
	}
	return &o.members[at]
}

// root reads the whole file.
func (d *jsonDoc) root() (*jsonObject, error) {
	at := 0
	if bytes.HasPrefix(d.src, []byte("\xef\xbb\xbf")) {
		at = 3
	}
	at, err := d.skip(at)
	if err != nil {
		return nil, err
	}
	end, o, err := d.read(at, 0)
	if err == nil {
		end, err = d.skip(end)
	}
	switch {
	case err != nil:
		return nil, err
	case o == nil, end != len(d.src):
		return nil, keep("it is no JSON object")
	}
	return o, nil
}

// skip returns the next position that is neither white space nor comment.
func (d *jsonDoc) skip(i int) (int, error) {
	for i < len(d.src) {
		rest := d.src[i:]
		switch {
		case strings.IndexByte(" \t\r\n", rest[0]) >= 0:
			i++
		case bytes.HasPrefix(rest, []byte("//")):
			n := bytes.IndexByte(rest, '\n')
			if n < 0 {
				return len(d.src), nil
			}
			i += n
		case bytes.HasPrefix(rest, []byte("/*")):
			n := bytes.Index(rest[2:], []byte("*/"))
			if n < 0 {
				return 0, d.malformed(i)
			}
			i += n + 4
		default:
			return i, nil
		}
	}
	return i, nil
}

func (d *jsonDoc) malformed(at int) error {
	return keep("it is no JSON: line %d", 1+bytes.Count(d.src[:min(at, len(d.src))], []byte{'\n'}))
}

const maxJSONDepth = 100

// read reads the value at i.
func (d *jsonDoc) read(i, depth int) (end int, o *jsonObject, err error) {
	if i >= len(d.src) || depth > maxJSONDepth {
		return 0, nil, d.malformed(i)
	}
	switch c := d.src[i]; {
	case c == '{':
		return d.readObject(i, depth)
	case c == '[':
		end, err = d.readArray(i, depth)
	case c == '"':
		end, _, err = ijson.ScanString(d.src, i)
	case c == '-' || '0' <= c && c <= '9':
		end, _, err = ijson.ScanNumber(d.src, i)
	default:
		end, err = ijson.ScanLiteral(d.src, i)
	}
	if err != nil {
		return 0, nil, d.malformed(i)
	}
	return end, nil, nil
}

func (d *jsonDoc) readArray(i, depth int) (end int, err error) {
	for i++; ; {
		if i, err = d.skip(i); err != nil || i >= len(d.src) {
			return 0, d.malformed(i)
		}
		if d.src[i] == ']' {
			return i + 1, nil
		}
		if i, _, err = d.read(i, depth+1); err != nil {
			return 0, err
		}
		if i, err = d.skip(i); err != nil || i >= len(d.src) {
			return 0, d.malformed(i)
		}
		if d.src[i] == ',' {
			i++
		} else if d.src[i] != ']' {
			return 0, d.malformed(i)
		}
	}
}

func (d *jsonDoc) readObject(i, depth int) (end int, o *jsonObject, err error) {
	o = &jsonObject{open: i}
	for i++; ; {
		if i, err = d.skip(i); err != nil || i >= len(d.src) {
			return 0, nil, d.malformed(i)
		}
		if d.src[i] == '}' {
			o.close = i
			return i + 1, o, nil
		}
		var m jsonMember
		if m, i, err = d.readMember(i, depth); err != nil {
			return 0, nil, err
		}
		if o.member(m.name) != nil {
			return 0, nil, keep("it has %q twice", m.name)
		}
		o.members = append(o.members, m)
	}
}

// readMember reads a member and the comma behind it.
func (d *jsonDoc) readMember(i, depth int) (m jsonMember, next int, err error) {
	m = jsonMember{key: i, comma: -1}
	if d.src[i] != '"' {
		return m, 0, d.malformed(i)
	}
	end, _, err := ijson.ScanString(d.src, i)
	if err != nil {
		return m, 0, d.malformed(i)
	}
	m.name = string(ijson.AppendUnquoted(nil, d.src[i+1:end-1]))
	if i, err = d.skip(end); err != nil || i >= len(d.src) || d.src[i] != ':' {
		return m, 0, d.malformed(end)
	}
	if m.value, err = d.skip(i + 1); err != nil {
		return m, 0, err
	}
	if m.end, m.object, err = d.read(m.value, depth+1); err != nil {
		return m, 0, err
	}
	if i, err = d.skip(m.end); err != nil || i >= len(d.src) {
		return m, 0, d.malformed(m.end)
	}
	switch d.src[i] {
	case ',':
		m.comma = i
		return m, i + 1, nil
	case '}':
		return m, i, nil
	}
	return m, 0, d.malformed(i)
}

// find returns the member at a path, or nil.
func (d *jsonDoc) find(path []string) (*jsonMember, error) {
	o, err := d.root()
	for i, name := range path {
		if err != nil {
			return nil, err
		}
		m := o.member(name)
		if m == nil || i == len(path)-1 {
			return m, nil
		}
		if o = m.object; o == nil {
			return nil, keep("its %q is no object", name)
		}
	}
	return nil, err
}

// set sets the value at a path: an object member by member.
func (d *jsonDoc) set(path []string, value any) error {
	m, err := d.find(path)
	if err != nil {
		return err
	}
	if m == nil {
		return d.insert(path, value)
	}
	if all, ok := value.([]setting); ok && m.object != nil {
		for _, s := range all {
			if err := d.set(append(slices.Clone(path), s.key), s.value); err != nil {
				return err
			}
		}
		return nil
	}
	old := d.src[m.value:m.end]
	var have, want any
	text := d.render(value, d.indentOf(m.key))
	if json.Unmarshal([]byte(text), &want) == nil && json.Unmarshal(old, &have) == nil && reflect.DeepEqual(have, want) {
		return nil
	}
	if err := d.replaceable(m); err != nil {
		return err
	}
	d.src = slices.Concat(d.src[:m.value], []byte(text), d.src[m.end:])
	return nil
}

// replaceable returns an error for a value with comments: they would go.
func (d *jsonDoc) replaceable(m *jsonMember) error {
	var any any
	if json.Unmarshal(d.src[m.value:m.end], &any) != nil {
		return keep("there are comments in its %q, which has to change", m.name)
	}
	return nil
}

// insert adds a member, and the objects that it is in.
func (d *jsonDoc) insert(path []string, value any) error {
	o, err := d.root()
	if err != nil {
		return err
	}
	for len(path) > 1 {
		m := o.member(path[0])
		if m == nil {
			value = nest(path[1:], value)
			path = path[:1]
			continue
		}
		o, path = m.object, path[1:] // find has seen that they are objects
	}
	outer := d.indentOf(o.open)
	inner := outer + d.unit()
	if len(o.members) > 0 && d.ownLine(o.members[0].key) {
		inner = d.indentOf(o.members[0].key)
	}
	text := "\n" + inner + quote(path[0]) + ": " + d.render(value, inner)
	// Behind the last member and the comments after it, where the line of the brace ends.
	at := len(bytes.TrimRight(d.src[:o.close], " \t\r\n"))
	if at == len(d.src[:o.close]) {
		text += "\n" + outer
	}
	if n := len(o.members); n > 0 && o.members[n-1].comma < 0 {
		end := o.members[n-1].end
		d.src = slices.Concat(d.src[:end], []byte(","), d.src[end:])
		at++
	}
	d.src = slices.Concat(d.src[:at], []byte(text), d.src[at:])
	return nil
}

// nest returns the objects of a path with a value in the innermost.
func nest(path []string, value any) any {
	for _, name := range slices.Backward(path) {
		value = []setting{{name, value}}
	}
	return value
}

// remove removes the member at a path, if there is one.
func (d *jsonDoc) remove(path []string) error {
	m, err := d.find(path)
	if m == nil || err != nil {
		return err
	}
	if err := d.replaceable(m); err != nil {
		return err
	}
	parent, err := d.root()
	if err != nil {
		return err
	}
	for _, name := range path[:len(path)-1] {
		parent = parent.member(name).object
	}
	start, end := m.key, m.end
	if m.comma >= 0 {
		end = m.comma + 1
	} else if at := slices.IndexFunc(parent.members, func(o jsonMember) bool { return o.key == m.key }); at > 0 {
		// The comma before the last member goes, and what stands between them stays.
		comma := parent.members[at-1].comma
		d.src = slices.Concat(d.src[:comma], d.src[comma+1:])
		start, end = start-1, end-1
	}
	// Its line goes if nothing else is on it.
	line := bytes.LastIndexByte(d.src[:start], '\n')
	next := bytes.IndexByte(d.src[end:], '\n')
	if line >= 0 && next >= 0 && len(bytes.TrimSpace(d.src[line:start])) == 0 && len(bytes.TrimSpace(d.src[end:end+next])) == 0 {
		start, end = line, end+next
	}
	d.src = slices.Concat(d.src[:start], d.src[end:])
	return nil
}

// indentOf returns the white space at the beginning of the line of a position.
func (d *jsonDoc) indentOf(at int) string {
	line := d.src[bytes.LastIndexByte(d.src[:at], '\n')+1:]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// ownLine reports whether nothing else stands before a position on its line.
func (d *jsonDoc) ownLine(at int) bool {
	line := d.src[bytes.LastIndexByte(d.src[:at], '\n')+1 : at]
	return len(bytes.TrimSpace(line)) == 0
}

// unit is one step of the file's indentation.
func (d *jsonDoc) unit() string {
	o, err := d.root()
	if err == nil && len(o.members) > 0 && d.ownLine(o.members[0].key) {
		if unit := d.indentOf(o.members[0].key); unit != "" {
			return unit
		}
	}
	return "  "
}

// render writes a value whose first line has an indentation.
func (d *jsonDoc) render(value any, indent string) string {
	switch v := value.(type) {
	case string:
		return quote(v)
	case []string:
		all := make([]string, len(v))
		for i, s := range v {
			all[i] = quote(s)
		}
		return "[" + strings.Join(all, ", ") + "]"
	case []setting:
		inner := indent + d.unit()
		lines := make([]string, len(v))
		for i, s := range v {
			lines[i] = inner + quote(s.key) + ": " + d.render(s.value, inner)
		}
		return "{\n" + strings.Join(lines, ",\n") + "\n" + indent + "}"
	}
	return "null"
}

// quote writes a string for JSON and TOML alike.
func quote(s string) string {
	return strings.ReplaceAll(string(ijson.AppendQuoted(nil, s)), "\x7f", `\u007f`)
}
