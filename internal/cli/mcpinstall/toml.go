package mcpinstall

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agentd/agentd/internal/ijson"
)

// editTOML sets the settings of a table. All other bytes stay.
func editTOML(src []byte, path []string, all []setting, obsolete []string, replace bool) ([]byte, error) {
	d := &tomlDoc{src: src}
	statements, err := d.statements()
	if err != nil {
		return nil, err
	}
	if err := d.plain(statements, path); err != nil {
		return nil, err
	}
	body := d.body(statements, path)
	if body != nil && !ours(body, all) {
		if !replace {
			return nil, another(path[len(path)-1])
		}
		for _, s := range statements {
			if !s.header && slices.Equal(s.path[:len(s.path)-1], path) {
				obsolete = append(obsolete, s.path[len(s.path)-1])
			}
		}
	}
	for _, s := range statements {
		if s.header && len(s.path) == len(path)+1 && slices.Equal(s.path[:len(path)], path) && slices.Contains(obsolete, s.path[len(path)]) {
			return nil, keep("it has the table %s, which has to go", strings.Join(s.path, "."))
		}
	}
	for _, key := range obsolete {
		if !slices.ContainsFunc(all, func(s setting) bool { return s.key == key }) {
			if err := d.remove(append(slices.Clone(path), key)); err != nil {
				return nil, err
			}
		}
	}
	for _, s := range all {
		if err := d.set(path, s); err != nil {
			return nil, err
		}
	}
	if _, err := d.statements(); err != nil { // what was written can be read
		return nil, err
	}
	return d.src, nil
}

// tomlDoc is a file that is being changed.
type tomlDoc struct{ src []byte }

// tomlStatement is a header or a key with its value.
type tomlStatement struct {
	header     bool
	list       bool     // a header in two brackets
	path       []string // of the table, or of the key with that of its table
	dotted     bool     // the key has several parts
	start, end int      // without the comment behind it
	value      int      // where it begins
	comments   bool     // the value has some
}

// statements reads the file.
func (d *tomlDoc) statements() (all []tomlStatement, err error) {
	var table []string
	for i := 0; ; {
		i = d.skip(i)
		if i >= len(d.src) {
			return all, nil
		}
		var s tomlStatement
		if d.src[i] == '[' {
			s, err = d.readHeader(i)
			table = s.path
		} else {
			s, err = d.readKey(i, table)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, s)
		i = s.end
		for i < len(d.src) && (d.src[i] == ' ' || d.src[i] == '\t') {
			i++
		}
		if i < len(d.src) && strings.IndexByte("#\r\n", d.src[i]) < 0 {
			return nil, d.malformed(i)
		}
	}
}

func (d *tomlDoc) malformed(at int) error {
	return keep("it is no TOML: line %d", 1+bytes.Count(d.src[:min(at, len(d.src))], []byte{'\n'}))
}

// skip returns the next position that is neither white space nor comment.
func (d *tomlDoc) skip(i int) int {
	for i < len(d.src) {
		switch c := d.src[i]; {
		case c == '#':
			n := bytes.IndexByte(d.src[i:], '\n')
			if n < 0 {
				return len(d.src)
			}
			i += n
		case strings.IndexByte(" \t\r\n", c) >= 0:
			i++
		default:
			return i
		}
	}
	return i
}

func (d *tomlDoc) readHeader(i int) (s tomlStatement, err error) {
	s = tomlStatement{header: true, start: i}
	s.list = bytes.HasPrefix(d.src[i:], []byte("[["))
	closing := "]"
	if s.list {
		closing = "]]"
	}
	if s.path, i, err = d.readPath(i + len(closing)); err != nil {
		return s, err
	}
	if !bytes.HasPrefix(d.src[i:], []byte(closing)) {
		return s, d.malformed(i)
	}
	s.end = i + len(closing)
	return s, nil
}

func (d *tomlDoc) readKey(i int, table []string) (s tomlStatement, err error) {
	s = tomlStatement{start: i}
	key, i, err := d.readPath(i)
	if err != nil {
		return s, err
	}
	if i >= len(d.src) || d.src[i] != '=' {
		return s, d.malformed(i)
	}
	s.path, s.dotted = slices.Concat(table, key), len(key) > 1
	for i++; i < len(d.src) && (d.src[i] == ' ' || d.src[i] == '\t'); i++ {
	}
	s.value = i
	s.end, s.comments, err = d.readValue(i, 0)
	return s, err
}

// readPath reads a key of several parts, and the white space behind it.
func (d *tomlDoc) readPath(i int) (path []string, next int, err error) {
	blank := func() {
		for i < len(d.src) && (d.src[i] == ' ' || d.src[i] == '\t') {
			i++
		}
	}
	for {
		blank()
		start := i
		switch {
		case i < len(d.src) && (d.src[i] == '"' || d.src[i] == '\''):
			end, err := d.readString(i)
			if err != nil {
				return nil, 0, err
			}
			text := d.src[i+1 : end-1]
			if d.src[i] == '"' {
				text = ijson.AppendUnquoted(nil, text)
			}
			path, i = append(path, string(text)), end
		default:
			for i < len(d.src) && bareKey(d.src[i]) {
				i++
			}
			if i == start {
				return nil, 0, d.malformed(i)
			}
			path = append(path, string(d.src[start:i]))
		}
		blank()
		if i >= len(d.src) || d.src[i] != '.' {
			return path, i, nil
		}
		i++
	}
}

func bareKey(c byte) bool {
	return c == '_' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// readString reads a string of one of the four kinds.
func (d *tomlDoc) readString(i int) (end int, err error) {
	mark := string(d.src[i])
	if bytes.HasPrefix(d.src[i:], []byte(strings.Repeat(mark, 3))) {
		mark = strings.Repeat(mark, 3)
	}
	for at := i + len(mark); at < len(d.src); at++ {
		switch {
		case mark[0] == '"' && d.src[at] == '\\':
			at++
		case d.src[at] == '\n' && len(mark) == 1:
			return 0, d.malformed(i)
		case bytes.HasPrefix(d.src[at:], []byte(mark)):
			end := at + len(mark)
			for len(mark) == 3 && end < len(d.src) && d.src[end] == mark[0] { // quotes before the mark
				end++
			}
			return end, nil
		}
	}
	return 0, d.malformed(i)
}

// readValue reads a value. Arrays and inline tables end with their brackets; all else
// with the line.
func (d *tomlDoc) readValue(i, depth int) (end int, comments bool, err error) {
	if i >= len(d.src) || depth > maxJSONDepth {
		return 0, false, d.malformed(i)
	}
	switch c := d.src[i]; c {
	case '"', '\'':
		end, err = d.readString(i)
		return end, false, err
	case '[', '{':
		closing := c + 2 // ] and } follow [ and { by two
		for i++; i < len(d.src); {
			switch d.src[i] {
			case closing:
				return i + 1, comments, nil
			case '#':
				comments = true
				i = d.skip(i)
			case '"', '\'', '[', '{':
				inner := false
				if i, inner, err = d.readValue(i, depth+1); err != nil {
					return 0, false, err
				}
				comments = comments || inner
			default:
				i++
			}
		}
		return 0, false, d.malformed(i)
	}
	end = i
	for end < len(d.src) && strings.IndexByte("#\r\n", d.src[end]) < 0 {
		end++
	}
	end = i + len(bytes.TrimRight(d.src[i:end], " \t"))
	if end == i || !utf8.Valid(d.src[i:end]) {
		return 0, false, d.malformed(i)
	}
	return end, false, nil
}

// plain returns an error where the table is written in a way that no statement can be
// added to: as a value, or by keys of several parts.
func (d *tomlDoc) plain(all []tomlStatement, path []string) error {
	for _, s := range all {
		inside := len(s.path) >= len(path) && slices.Equal(s.path[:len(path)], path)
		switch {
		case s.header && s.list && inside, s.header && s.list && len(s.path) <= len(path) && slices.Equal(s.path, path[:len(s.path)]):
			return keep("%s is a list of tables in it", strings.Join(s.path, "."))
		case s.header:
		case len(s.path) <= len(path) && slices.Equal(s.path, path[:len(s.path)]):
			return keep("%s is written as a value in it", strings.Join(s.path, "."))
		case inside && s.dotted && len(s.path) > len(path):
			return keep("%s is written as a key of several parts in it", strings.Join(s.path, "."))
		}
	}
	return nil
}

// body returns the text of the table's own statements, or nil if there is no such table.
func (d *tomlDoc) body(all []tomlStatement, path []string) (text []byte) {
	for _, s := range all {
		switch {
		case s.header && slices.Equal(s.path, path) && text == nil:
			text = []byte{}
		case !s.header && len(s.path) == len(path)+1 && slices.Equal(s.path[:len(path)], path):
			text = append(append(text, d.src[s.start:s.end]...), '\n')
		}
	}
	return text
}

// set sets one key of a table.
func (d *tomlDoc) set(table []string, want setting) error {
	all, err := d.statements()
	if err != nil {
		return err
	}
	text := renderTOML(want.value)
	last := -1 // the statement that the key comes behind
	for i, s := range all {
		switch {
		case !s.header && slices.Equal(s.path, append(slices.Clone(table), want.key)):
			return d.change(s, want, text)
		case s.header && slices.Equal(s.path, table):
			last = i
		case last >= 0 && !s.header && last == i-1 && len(s.path) == len(table)+1 && slices.Equal(s.path[:len(table)], table):
			last = i
		}
	}
	line := want.key + " = " + text
	if last < 0 {
		names := make([]string, len(table))
		for i, name := range table {
			names[i] = tomlKey(name)
		}
		if len(d.src) > 0 {
			if !bytes.HasSuffix(d.src, []byte("\n")) {
				d.src = append(slices.Clip(d.src), '\n')
			}
			d.src = append(slices.Clip(d.src), '\n')
		}
		d.src = append(slices.Clip(d.src), ("[" + strings.Join(names, ".") + "]\n" + line + "\n")...)
		return nil
	}
	end := all[last].end
	if n := bytes.IndexByte(d.src[end:], '\n'); n >= 0 { // behind its comment
		end += n
	} else {
		end = len(d.src)
	}
	d.src = slices.Concat(d.src[:end], []byte("\n"+line), d.src[end:])
	return nil
}

// change gives a key another value. To a list of variables, it only adds.
func (d *tomlDoc) change(s tomlStatement, want setting, text string) error {
	old := string(d.src[s.value:s.end])
	if names, ok := want.value.([]string); ok && want.key == "env_vars" && strings.HasPrefix(old, "[") {
		var missing []string
		for _, name := range names {
			if !strings.Contains(old, quote(name)) && !strings.Contains(old, "'"+name+"'") {
				missing = append(missing, quote(name))
			}
		}
		if missing == nil {
			return nil
		}
		if separator := ", "; strings.TrimSpace(old[1:len(old)-1]) != "" {
			missing[len(missing)-1] += separator
		}
		text = "[" + strings.Join(missing, ", ") + old[1:]
	} else if s.comments && old != text {
		return keep("there are comments in its %q, which has to change", want.key)
	}
	d.src = slices.Concat(d.src[:s.value], []byte(text), d.src[s.end:])
	return nil
}

// remove removes a key, if it is there, with its line if nothing else is on it.
func (d *tomlDoc) remove(path []string) error {
	all, err := d.statements()
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.header || !slices.Equal(s.path, path) {
			continue
		}
		line := bytes.LastIndexByte(d.src[:s.start], '\n') + 1
		end := len(d.src)
		if n := bytes.IndexByte(d.src[s.end:], '\n'); n >= 0 {
			end = s.end + n + 1
		}
		if s.comments || len(bytes.TrimSpace(d.src[s.end:end])) > 0 {
			return keep("there are comments in its %q, which has to go", path[len(path)-1])
		}
		d.src = slices.Concat(d.src[:line], d.src[end:])
		return nil
	}
	return nil
}

func tomlKey(name string) string {
	if name != "" && !slices.ContainsFunc([]byte(name), func(c byte) bool { return !bareKey(c) }) {
		return name
	}
	return quote(name)
}

func renderTOML(value any) string {
	switch v := value.(type) {
	case string:
		return quote(v)
	case []string:
		all := make([]string, len(v))
		for i, s := range v {
			all[i] = quote(s)
		}
		return "[" + strings.Join(all, ", ") + "]"
	}
	return `""`
}
