package compile

import (
	"maps"
	"net/url"
	"strings"

	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/schema/internal/ir"
	"github.com/agentd/agentd/schema/internal/jsonptr"
)

// resolve finds the target of every $ref, once all definitions are known. Only
// "#" and the definitions of the root can be named: nothing is fetched, and no
// part of a schema can be reached by a pointer that a later edit would break.
func (c *compiler) resolve(root *ir.Node) {
	definitions := map[string]*ir.Node{}
	var names []string
	for _, d := range root.Notes.Definitions {
		definitions[d.Name] = d.Node
		names = append(names, d.Name)
	}
	for _, r := range c.refs {
		if r.text == "#" {
			r.node.Ref = root
			continue
		}
		name, ok := definitionName(r.text)
		if !ok {
			c.fault(r.pointer, "$ref must be #/definitions/<name>, or # for the root",
				"move the schema into definitions at the root; nothing outside this document is read")
			continue
		}
		target := definitions[name]
		if target == nil {
			c.fault(r.pointer, "$ref names the definition "+truncate.Quote(name)+", which does not exist", c.suggest(name, names))
			continue
		}
		r.node.Ref, r.node.RefName = target, name
	}
}

// definitionName decodes a reference: percent-encoding first, as a URI
// fragment, then the escapes of RFC 6901.
func definitionName(ref string) (string, bool) {
	segment, ok := strings.CutPrefix(ref, "#/definitions/")
	// Only a definition itself can be named, not a part of it.
	if !ok || strings.Contains(segment, "/") {
		return "", false
	}
	segment, err := url.PathUnescape(segment)
	if err != nil {
		return "", false
	}
	// RFC 6901 section 3: a tilde is followed by 0 or 1.
	for i := 0; i < len(segment); i++ {
		if segment[i] == '~' && (i+1 == len(segment) || segment[i+1] != '0' && segment[i+1] != '1') {
			return "", false
		}
	}
	return jsonptr.Unescape(segment), true
}

// link fills in what the passes over payloads read: targets of $ref, and the
// dispatch of combinators.
func (c *compiler) link() {
	for _, n := range c.nodes {
		resolveFinal(n)
	}
	for _, n := range c.nodes {
		linkNode(n)
	}
	for _, n := range c.nodes {
		for _, comb := range []*ir.Combinator{n.OneOf, n.AnyOf} {
			if comb != nil {
				comb.Dispatch = c.newDispatch(comb.To)
			}
		}
	}
}

// resolveFinal finds where a chain of $ref ends, and records it in every node on
// the way, so that a long chain is walked once. refuseLoops has made sure that
// the chain ends.
func resolveFinal(n *ir.Node) {
	end := n
	for end.Ref != nil && end.Final == nil {
		end = end.Ref
	}
	if end.Final != nil {
		end = end.Final
	}
	for ; n.Final == nil; n = n.Ref {
		n.Final = end
		if n == end {
			return
		}
	}
}

// linkNode fills in the targets that one node leads to.
func linkNode(n *ir.Node) {
	if n.Obj != nil {
		linkObject(n.Obj)
	}
	if n.Arr != nil && n.Arr.Items != nil && !n.Arr.Items.Target().Any {
		n.Arr.To = n.Arr.Items.Target()
	}
	for _, comb := range []*ir.Combinator{n.OneOf, n.AnyOf, n.AllOf} {
		if comb == nil {
			continue
		}
		for _, b := range comb.Branches {
			comb.To = append(comb.To, b.Target())
		}
	}
	if n.Not != nil {
		n.NotTo = n.Not.Target()
	}
}

// linkObject fills in what judges each member: nil where anything goes.
func linkObject(o *ir.ObjectRule) {
	if o.Additional != nil {
		o.Rest = o.Additional.Target()
		o.Closed = o.Rest.Never
		if o.Rest.Any {
			o.Rest = nil
		}
	}
	for i := range o.Props {
		p := &o.Props[i]
		if p.Node == nil {
			p.To = o.Rest
		} else if p.To = p.Node.Target(); p.To.Any {
			p.To = nil
		}
	}
}

// newDispatch returns how to pick a branch by the value of one property, or
// nil. It is possible where every branch fixes the property to strings by
// const or enum, and no string belongs to two branches: then all other branches
// fail whatever else the object holds, and a union of a hundred kinds of message
// costs what one of them costs. An object without the property is not decided,
// because properties alone does not require it.
func (c *compiler) newDispatch(branches []*ir.Node) *ir.Dispatch {
	// A property that decides must be declared by every branch, so that those
	// of the first are all candidates.
	if len(branches) < 2 || branches[0].Obj == nil {
		return nil
	}
	for _, p := range branches[0].Obj.Props[:branches[0].Obj.Declared] {
		clear(c.tags)
		if c.fill(p.Name, branches) {
			return &ir.Dispatch{Property: p.Name, Branch: maps.Clone(c.tags)}
		}
	}
	return nil
}

// fill assigns the values of a property to the branches in c.tags, and reports whether
// every value belongs to one branch only.
func (c *compiler) fill(property string, branches []*ir.Node) bool {
	for i, b := range branches {
		if b.Obj == nil || !c.spend(stepsOfSchema) {
			return false
		}
		at := b.Obj.Index.Find(b.Obj.Props, []byte(property))
		if at < 0 || at >= b.Obj.Declared {
			return false
		}
		tags := b.Obj.Props[at].Node.Target().Tags()
		if tags == nil {
			return false
		}
		for _, tag := range tags {
			if !c.spend(1 + len(tag)/8) {
				return false
			}
			if _, taken := c.tags[tag]; taken {
				return false
			}
			c.tags[tag] = i
		}
	}
	return true
}
