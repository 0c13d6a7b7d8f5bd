package identity

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/schema/internal/decimal"
	"github.com/agentd/agentd/schema/internal/hashtable"
	"github.com/agentd/agentd/schema/internal/jsontree"
	"github.com/agentd/agentd/schema/internal/memo"
)

// Identifier finds or makes the numbers of values in checked JSON text.
type Identifier struct {
	Table  *Table
	Frozen bool // find only; for tables that many goroutines read
	// Memo remembers the numbers of containers by offset, under the pseudo
	// node memoID, so that arrays of unique arrays of unique arrays stay
	// linear. nil remembers nothing.
	Memo   *memo.Table
	MemoID uint32
	key    []byte // stack of keys being built
	pairs  []pair // stack of members of open objects
}

// pair is one member of an object: the numbers of its name and its value.
type pair struct{ name, value uint32 }

// Size returns the room that keys and members of open objects take.
func (x *Identifier) Size() (bytes, members int) { return cap(x.key), cap(x.pairs) }

// Trim gives up scratch space that a payload made grow beyond reason.
func (x *Identifier) Trim() {
	if cap(x.key) > maxKeptBytes || cap(x.pairs) > hashtable.MaxKept {
		x.key, x.pairs = nil, nil
	}
}

// Identify returns the number of the value at i, and its end. It reports
// false when the table is frozen and has no such value; the end is then not
// known either. Values of parts are numbered before the whole, so that a key
// holds numbers of four bytes in place of the parts.
func (x *Identifier) Identify(data []byte, i int) (id uint32, end int, ok bool) {
	kind := jsontree.KindOf(data[i])
	if kind < jsontree.Array {
		return x.scalar(data, i, kind)
	}
	if x.Memo != nil {
		if v, ok := x.Memo.Get(memo.Key(x.MemoID, i)); ok {
			end, _ := x.Memo.Get(memo.Key(memo.EndID, i))
			return uint32(v), end, v >= 0
		}
	}
	base := len(x.key)
	if kind == jsontree.Array {
		end, ok = x.array(data, i)
	} else {
		end, ok = x.object(data, i)
	}
	if ok {
		id, ok = x.number(x.key[base:])
	}
	x.key = x.key[:base]
	switch {
	case x.Memo == nil:
	case ok:
		x.Memo.Put(memo.Key(x.MemoID, i), int(id))
		x.Memo.Put(memo.Key(memo.EndID, i), end)
	default:
		x.Memo.Put(memo.Key(x.MemoID, i), -1)
	}
	return id, end, ok
}

// number looks up or adds a key.
func (x *Identifier) number(key []byte) (uint32, bool) {
	// Adding to a table that other goroutines read would be a race.
	if x.Frozen {
		return x.Table.find(key)
	}
	return x.Table.add(key), true
}

// scalar numbers a value without parts. Strings lose their escapes and numbers
// their spelling, so that equal ones share a key.
func (x *Identifier) scalar(data []byte, i int, kind jsontree.Kind) (id uint32, end int, ok bool) {
	if kind == jsontree.String {
		end, _, _ = ijson.ScanString(data, i)
		id, ok = x.Text(data[i+1 : end-1])
		return id, end, ok
	}
	base := len(x.key)
	x.key = append(x.key, '0'+byte(kind))
	if kind == jsontree.Number {
		end, _, _ = ijson.ScanNumber(data, i)
		x.key = decimal.Parse(data[i:end]).AppendKey(x.key)
	} else {
		end, _ = ijson.ScanLiteral(data, i)
		x.key = append(x.key, data[i])
	}
	id, ok = x.number(x.key[base:])
	x.key = x.key[:base]
	return id, end, ok
}

// Text numbers the string with the given raw content.
func (x *Identifier) Text(raw []byte) (id uint32, ok bool) {
	base := len(x.key)
	x.key = append(x.key, '0'+byte(jsontree.String))
	x.key = ijson.AppendUnquoted(x.key, raw)
	id, ok = x.number(x.key[base:])
	x.key = x.key[:base]
	return id, ok
}

// array appends the key of the array at i.
func (x *Identifier) array(data []byte, i int) (end int, ok bool) {
	base := len(x.key)
	x.key = append(x.key, '0'+byte(jsontree.Array))
	for i = ijson.SkipSpace(data, i+1); data[i] != ']'; {
		id, end, ok := x.Identify(data, i)
		if !ok || x.tooLong(base) {
			return 0, false
		}
		x.key = binary.LittleEndian.AppendUint32(x.key, id)
		if i = ijson.SkipSpace(data, end); data[i] == ',' {
			i = ijson.SkipSpace(data, i+1)
		}
	}
	return i + 1, true
}

// object appends the key of the object at i, in which the order of members
// leaves no trace.
func (x *Identifier) object(data []byte, i int) (end int, ok bool) {
	first := len(x.pairs)
	x.key = append(x.key, '0'+byte(jsontree.Object))
	for i = ijson.SkipSpace(data, i+1); data[i] != '}'; {
		name, end, ok := x.scalar(data, i, jsontree.String)
		// Each member adds eight bytes to the key, so that an object with more
		// members than fit the longest key equals none.
		if !ok || x.Frozen && len(x.pairs)-first > x.Table.longest/8 {
			x.pairs = x.pairs[:first]
			return 0, false
		}
		i = ijson.SkipSpace(data, ijson.SkipSpace(data, end)+1)
		value, end, ok := x.Identify(data, i)
		if !ok {
			x.pairs = x.pairs[:first]
			return 0, false
		}
		x.pairs = append(x.pairs, pair{name, value})
		if i = ijson.SkipSpace(data, end); data[i] == ',' {
			i = ijson.SkipSpace(data, i+1)
		}
	}
	// Names differ, so that sorting by name alone gives one order.
	slices.SortFunc(x.pairs[first:], func(a, b pair) int { return cmp.Compare(a.name, b.name) })
	for _, p := range x.pairs[first:] {
		x.key = binary.LittleEndian.AppendUint32(x.key, p.name)
		x.key = binary.LittleEndian.AppendUint32(x.key, p.value)
	}
	x.pairs = x.pairs[:first]
	return i + 1, true
}

// tooLong reports that no value of a frozen table can match any more.
func (x *Identifier) tooLong(base int) bool {
	return x.Frozen && len(x.key)-base > x.Table.longest
}
