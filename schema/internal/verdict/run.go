package verdict

import (
	"context"

	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/schema/internal/hashtable"
	"github.com/agentd/agentd/schema/internal/identity"
	"github.com/agentd/agentd/schema/internal/ir"
	"github.com/agentd/agentd/schema/internal/jsontree"
	"github.com/agentd/agentd/schema/internal/memo"
)

// maxKeptBytes is the size of a string without escapes, in bytes, whose room stays for
// the next payload.
const maxKeptBytes = 1 << 20

// Run is the scratch space of one pass over one payload. It decides whether
// the payload is valid, reading each byte once unless combinators ask for
// more, and stops at the first fault of any kind.
//
// The pass is a recursive descent over the bytes that carries the schema
// along: no tree of values is built, because what a value was is of no
// interest once its schema has passed it. Syntax and schema are judged
// together, so that bytes the schema accepts have also been checked to be
// strict JSON. What must look at a value as a whole (const, enum and
// uniqueItems with arrays or objects, the later branches of a combinator)
// reads it again, and then knows that the bytes are sound.
//
// Methods that judge a value return the offset after it. A negative result r
// means that it does not pass, or is not JSON, and that the fault shows at
// offset ^r.
type Run struct {
	budget
	data    []byte
	memoise bool
	memo    memo.Table
	any     *ir.Node // accepts everything; its id is memo.EndID

	anyArray  ir.ArrayRule
	anyObject ir.ObjectRule

	names   ijson.Names   // names of members that no schema declares
	skipper ijson.Scanner // values that no schema constrains
	wide    []uint64      // which properties were seen, beyond the first 64
	text    []byte        // a string without its escapes

	distinct distinct // elements of arrays with uniqueItems
	open     int      // how many of those arrays are open

	known  identity.Identifier // finds values of const and enum
	unique identity.Identifier // numbers the elements of arrays with uniqueItems
	ids    identity.Table      // the table of unique
	seen   memo.Table          // which numbers occurred in which array
	arrays uint32              // the number of the last array that needed one

	parts []part // members and elements that may be unevaluated; a stack
}

// NewRun returns scratch space for payloads of one schema, one at a time.
func NewRun(s *ir.Schema) *Run {
	r := &Run{any: &ir.Node{ID: memo.EndID, Any: true, Shared: true, Types: ir.AnyType}}
	r.any.Final = r.any
	r.anyArray.Max = ir.Unbounded
	r.known = identity.Identifier{Table: &s.Literals, Frozen: true}
	r.unique = identity.Identifier{Table: &r.ids, Memo: &r.memo, MemoID: memo.IdentityID}
	r.remember(s.Memoise)
	return r
}

// remember chooses whether to judge through the memo.
func (r *Run) remember(yes bool) {
	r.memoise = yes
	r.known.Memo, r.known.MemoID = nil, memo.LiteralID
	if yes {
		r.known.Memo = &r.memo
	}
}

// Begin prepares for a payload, which may cost so many steps. What the last one left
// behind has been cleared by end, except for the names of objects that were open at
// a fault.
func (r *Run) Begin(ctx context.Context, data []byte, steps int) {
	r.start(ctx, steps, len(data))
	r.data = data[:len(data):len(data)] // nobody reads behind it
	r.names.Reset()
	r.wide = r.wide[:0]
	r.parts = r.parts[:0]
	r.arrays, r.open = 0, 0
}

// end gives up the payload, and scratch space that it made grow beyond reason.
func (r *Run) end() {
	r.data, r.ctx = nil, nil
	r.memo.Reset()
	r.names.Trim()
	r.skipper.Trim()
	if r.arrays > 0 {
		r.ids.Trim()
		r.seen.Reset()
		r.distinct.trim()
	}
	if cap(r.text) > maxKeptBytes {
		r.text = nil
	}
	if cap(r.parts) > hashtable.MaxKept {
		r.parts = nil
	}
	r.unique.Trim()
}

// document judges the whole payload: one value, with white space around it. It returns
// where a fault shows, or a negative number. A run whose budget is over has found out
// nothing, whatever it says.
func (r *Run) document(root *ir.Node, depth int) (fault int) {
	if r.over {
		return 0
	}
	end := r.value(root, ijson.SkipSpace(r.data, 0), depth)
	switch {
	case end < 0:
		return ^end
	case ijson.SkipSpace(r.data, end) < len(r.data) || r.over:
		return end
	}
	return -1
}

// value judges the value at i, where no white space stands. depth is the
// number of containers that may still open.
func (r *Run) value(n *ir.Node, i, depth int) int {
	if n.Combines || r.memoise {
		return r.combined(n, i, depth)
	}
	return r.own(n, i, depth)
}

// Skip passes over a value that no schema constrains.
func (r *Run) Skip(i, depth int) int {
	var end int
	var err error
	switch {
	case i < len(r.data) && r.data[i] == '"': // the skipper is prepared for names
		end, _, err = ijson.ScanString(r.data, i)
	case r.memoise:
		return r.combined(r.any, i, depth)
	case i < len(r.data) && r.data[i]-'0' < 10:
		end, _, err = ijson.ScanNumber(r.data, i)
	default:
		end, err = r.skipper.Skip(r.data, i, depth)
	}
	if err != nil {
		return ^i
	}
	return end
}

// own judges by all keywords but the combinators. The type comes first: it is
// known from the first byte, and most wrong values and most branches of
// unions fail it.
func (r *Run) own(n *ir.Node, i, depth int) int {
	if i >= len(r.data) {
		return ^i
	}
	kind := jsontree.KindOf(r.data[i])
	if n.Types&ir.TypeOf(kind) == 0 && (kind != jsontree.Number || n.Types&ir.TypeInteger == 0) {
		return ^i
	}
	var end int
	switch kind {
	case jsontree.String:
		end = r.stringValue(n.Str, i)
	case jsontree.Number:
		end = r.numberValue(n, i)
	case jsontree.Object:
		end = r.object(n.Obj, i, depth-1)
	case jsontree.Array:
		end = r.array(n.Arr, i, depth-1)
	default:
		end = r.word(i)
	}
	if end < 0 || n.Enum == nil && n.Constant == nil {
		return end
	}
	if n.Enum != nil && !r.Among(n.Enum, kind, i, end) || n.Constant != nil && !r.Among(n.Constant, kind, i, end) {
		return ^i
	}
	return end
}

// word passes over true, false or null. A byte that starts no JSON value has the
// kind null and is refused here.
func (r *Run) word(i int) int {
	end, err := ijson.ScanLiteral(r.data, i)
	if err != nil {
		return ^i
	}
	return end
}
