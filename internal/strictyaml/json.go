package strictyaml

import (
	"bytes"
	"errors"
	"strconv"
	"unicode/utf8"

	"github.com/agentd/agentd/internal/ijson"
)

// json parses the source as one JSON value (RFC 8259, strings as in RFC 7493).
func (p *parser) json() error {
	p.src = bytes.TrimPrefix(p.src, []byte("\xef\xbb\xbf")) // a byte order mark: RFC 8259 section 8.1 lets us pass it over
	b := jsonBuilder{parser: p, cursor: cursor{src: p.src, line: 1, column: 1}}
	start := ijson.SkipSpace(p.src, 0)
	if start == len(p.src) {
		return p.fatal(1, 1, "the file is empty", "")
	}
	root, end, err := b.value(start, 0)
	if err == nil {
		if end = ijson.SkipSpace(p.src, end); end < len(p.src) {
			err = ijson.Unexpected(p.src, end, ijson.ExpectedEOF)
		}
	}
	p.root = root
	return b.located(err)
}

// jsonBuilder turns JSON text into nodes. Offsets passed to it only grow.
type jsonBuilder struct {
	*parser
	cursor cursor
}

// located turns a syntax error into the fault at its place.
func (b *jsonBuilder) located(err error) error {
	var syntax *ijson.SyntaxError
	if !errors.As(err, &syntax) {
		return err
	}
	line, column := place(b.src, syntax.Offset)
	return b.fatal(line, column, "invalid JSON: "+syntax.Msg, "")
}

// value builds the value at offset i, where no white space stands.
func (b *jsonBuilder) value(i, depth int) (n *node, end int, err error) {
	if i >= len(b.src) {
		return nil, 0, ijson.Unexpected(b.src, i, ijson.ExpectedValue)
	}
	n = &node{}
	n.line, n.column = b.cursor.at(i)
	if err := b.count(n.line, n.column, depth); err != nil {
		return nil, 0, err
	}
	switch c := b.src[i]; {
	case c == '{':
		n.kind = Map
		end, err = b.object(n, i, depth)
	case c == '[':
		n.kind = List
		end, err = b.array(n, i, depth)
	case c == '"':
		n.kind = String
		n.text, end, err = b.text(i)
	case c == '-' || isDigit(c):
		n.kind = Number
		end, _, err = ijson.ScanNumber(b.src, i)
		if n.text = string(b.src[i:max(i, end)]); len(n.text) > maxNumber {
			err = b.fatal(n.line, n.column, errLongNumber.Error(), "")
		}
	default:
		end, err = ijson.ScanLiteral(b.src, i)
		if n.kind = Bool; c == 'n' {
			n.kind = Null
		}
		n.text = string(b.src[i:max(i, end)])
	}
	return n, end, err
}

// text reads the string that opens at offset i.
func (b *jsonBuilder) text(i int) (s string, end int, err error) {
	end, escaped, err := ijson.ScanString(b.src, i)
	if err != nil {
		return "", 0, err
	}
	raw := b.src[i+1 : end-1]
	if escaped {
		raw = ijson.AppendUnquoted(nil, raw)
	}
	return string(raw), end, nil
}

// array builds the list that opens at offset i.
func (b *jsonBuilder) array(n *node, i, depth int) (end int, err error) {
	i = ijson.SkipSpace(b.src, i+1)
	if i < len(b.src) && b.src[i] == ']' {
		return i + 1, nil
	}
	for {
		b.enter(strconv.Itoa(len(n.items)))
		item, end, err := b.value(i, depth+1)
		b.leave()
		if err != nil {
			return 0, err
		}
		n.items = append(n.items, item)
		next, more, err := b.more(end, ']', ijson.ExpectedArrayEnd)
		if err != nil || !more {
			return next, err
		}
		i = next
	}
}

// object builds the mapping that opens at offset i. Unlike a strict JSON scan,
// it goes on after a duplicate key, to report them all.
func (b *jsonBuilder) object(n *node, i, depth int) (end int, err error) {
	i = ijson.SkipSpace(b.src, i+1)
	if i < len(b.src) && b.src[i] == '}' {
		return i + 1, nil
	}
	seen := make(map[string]int)
	for {
		if i >= len(b.src) || b.src[i] != '"' {
			return 0, ijson.Unexpected(b.src, i, ijson.ExpectedKey)
		}
		var k key
		k.line, k.column = b.cursor.at(i)
		if k.name, end, err = b.text(i); err != nil {
			return 0, err
		}
		if i = ijson.SkipSpace(b.src, end); i >= len(b.src) || b.src[i] != ':' {
			return 0, ijson.Unexpected(b.src, i, ijson.ExpectedColon)
		}
		b.enter(k.name)
		value, end, err := b.value(ijson.SkipSpace(b.src, i+1), depth+1)
		if err == nil {
			b.addMember(n, seen, k, value)
		}
		b.leave()
		if err != nil {
			return 0, err
		}
		next, more, err := b.more(end, '}', ijson.ExpectedObjectEnd)
		if err != nil || !more {
			return next, err
		}
		i = next
	}
}

// more passes the comma after an item, or the closing byte of its container.
func (b *jsonBuilder) more(i int, closing byte, due ijson.Expected) (next int, more bool, err error) {
	i = ijson.SkipSpace(b.src, i)
	switch {
	case i < len(b.src) && b.src[i] == ',':
		return ijson.SkipSpace(b.src, i+1), true, nil
	case i < len(b.src) && b.src[i] == closing:
		return i + 1, false, nil
	}
	return 0, false, ijson.Unexpected(b.src, i, due)
}

// cursor turns growing byte offsets into lines and columns in one pass.
type cursor struct {
	src          []byte
	offset       int
	line, column int
}

// at moves to an offset, which must not be before the last one.
func (c *cursor) at(offset int) (line, column int) {
	passed := c.src[c.offset:offset]
	if i := bytes.LastIndexByte(passed, '\n'); i >= 0 {
		c.line += bytes.Count(passed, []byte("\n"))
		c.column = 1
		passed = passed[i+1:]
	}
	c.column += utf8.RuneCount(passed)
	c.offset = offset
	return c.line, c.column
}
