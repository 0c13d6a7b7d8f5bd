package strictyaml

import (
	"strconv"
	"strings"
)

// Places are where a value and all that is in it stand in their file. They are for those who
// keep them long: a [Value] holds its whole file. They are immutable, and the zero Places are
// those of a value that is in no file.
type Places struct {
	at     Position
	inside []innerPlace // in the order of the file, each followed by what is in it
}

// An innerPlace is where a value in another one stands.
type innerPlace struct {
	name         string // of the member, or the item's index
	line, column int32
	size         int32 // how many places follow it for what is in it
}

// Places returns those of the value.
func (v Value) Places() Places {
	p := Places{at: v.Position()}
	if v.node != nil {
		p.inside = appendInside(make([]innerPlace, 0, v.node.size()), v.node)
	}
	return p
}

// size is the number of values in a value. Like appendInside it cannot recurse without end,
// see appendNode.
func (n *node) size() int {
	size := len(n.items)
	for _, item := range n.items {
		size += item.size()
	}
	return size
}

// appendInside appends the places of what is in a value. Those of members are their keys', as
// in [Value.Position].
func appendInside(dst []innerPlace, n *node) []innerPlace {
	for i, item := range n.items {
		at := len(dst)
		if n.kind == Map {
			dst = append(dst, newPlace(n.keys[i].name, n.keys[i].line, n.keys[i].column))
		} else {
			dst = append(dst, newPlace(strconv.Itoa(i), item.line, item.column))
		}
		dst = appendInside(dst, item)
		dst[at].size = int32(len(dst) - at - 1) //nolint:gosec // MaxNodes bounds it
	}
	return dst
}

func newPlace(name string, line, column int) innerPlace {
	return innerPlace{name: name, line: int32(line), column: int32(column)} //nolint:gosec // MaxBytes bounds both
}

// Locate returns the place that a JSON pointer relative to the value leads to,
// or that of the deepest value on the way if the rest does not exist.
// The result's Pointer is the whole pointer, from the root of the file.
func (p Places) Locate(pointer string) Position {
	at, inside := p.at, p.inside
	// Each token follows a slash; a slash inside a token is written ~1.
	for rest, more := strings.CutPrefix(pointer, "/"); more; {
		var token string
		token, rest, more = strings.Cut(rest, "/")
		i := find(inside, unescape(token))
		if i < 0 {
			break
		}
		at.Line, at.Column = int(inside[i].line), int(inside[i].column)
		inside = inside[i+1:][:inside[i].size]
	}
	at.Pointer += pointer
	return at
}

// find returns where the place of that name is among those directly in a value, -1 for nowhere.
func find(inside []innerPlace, name string) int {
	for i := 0; i < len(inside); i += 1 + int(inside[i].size) {
		if inside[i].name == name {
			return i
		}
	}
	return -1
}

// unescape returns the name that a token of a JSON pointer stands for.
func unescape(token string) string {
	if !strings.Contains(token, "~") {
		return token
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
}
