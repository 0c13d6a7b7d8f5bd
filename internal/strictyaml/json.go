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
	p.src = bytes.TrimPrefix(p.src, []byte("\xef\xbb\xbf")) // RFC 8259 section 8.1 lets a parser ignore a byte order mark
	b := jsonBuilder{parser: p, cursor: cursor{src: p.src, line: 1, column: 1}}
	start := ijson.SkipSpace(p.src, 0)
	if start == len(p.src) {
		return p.fatal(1, 1, "the file is empty", "")
	}
	root, end, err := b.value(start, 0)
	if err == nil {
		err = ijson.End(p.src, end)
	}
	p.root = root
	return b.located(err)
}

// jsonBuilder builds nodes from JSON text. The offsets passed to its cursor only
// grow, so that all positions together cost one pass over the file.
type jsonBuilder struct {
	*parser
	cursor cursor
}

// located converts a syntax error of package ijson to the fault at its line and
// column. Other errors are faults already.
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
	n = &node{}
	n.line, n.column = b.cursor.at(i)
	if err := b.count(n.line, n.column, depth); err != nil {
		return nil, 0, err
	}
	var c byte // 0 at the end of the source
	if i < len(b.src) {
		c = b.src[i]
	}
	switch {
	case c == '{':
		n.kind = Map
		end, err = b.object(n, i, depth)
	case c == '[':
		n.kind = List
		end, err = b.array(n, i, depth)
	case c == '"':
		n.kind = String
		var escaped bool
		if end, escaped, err = ijson.ScanString(b.src, i); err == nil {
			n.text = unquote(b.src[i+1:end-1], escaped)
		}
	case c == '-' || isDigit(c):
		n.kind = Number
		end, _, err = ijson.ScanNumber(b.src, i)
		// After an error end is 0, hence max.
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

// array builds the list that opens at offset i.
func (b *jsonBuilder) array(n *node, i, depth int) (end int, err error) {
	i, empty := ijson.Enter(b.src, i)
	for more := !empty; more; {
		b.enter(strconv.Itoa(len(n.items)))
		item, end, err := b.value(i, depth+1)
		b.leave()
		if err != nil {
			return 0, err
		}
		n.items = append(n.items, item)
		if i, more, err = ijson.Next(b.src, end, ']'); err != nil {
			return 0, err
		}
	}
	return i, nil
}

// object builds the mapping that opens at offset i. Unlike [ijson.Check], it
// goes on after a duplicate key, so that a file's author sees all of them.
func (b *jsonBuilder) object(n *node, i, depth int) (end int, err error) {
	i, empty := ijson.Enter(b.src, i)
	seen := make(map[string]int)
	for more := !empty; more; {
		nameEnd, escaped, value, err := ijson.ScanName(b.src, i)
		if err != nil {
			return 0, err
		}
		k := key{name: unquote(b.src[i+1:nameEnd-1], escaped)}
		k.line, k.column = b.cursor.at(i)
		b.enter(k.name)
		item, end, err := b.value(value, depth+1)
		if err == nil {
			// While the key is still on the path: a duplicate is reported under its
			// pointer.
			b.addMember(n, seen, k, item)
		}
		b.leave()
		if err != nil {
			return 0, err
		}
		if i, more, err = ijson.Next(b.src, end, '}'); err != nil {
			return 0, err
		}
	}
	return i, nil
}

// unquote returns the characters that the raw content of a string stands for.
func unquote(raw []byte, escaped bool) string {
	if escaped {
		raw = ijson.AppendUnquoted(nil, raw)
	}
	return string(raw)
}

// cursor converts growing byte offsets to lines and columns in one pass.
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
