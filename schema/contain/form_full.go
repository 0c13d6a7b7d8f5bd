package contain

import (
	"encoding/binary"

	"github.com/agentd/agentd/schema/internal/ir"
	"github.com/agentd/agentd/schema/internal/pattern"
)

// fullForm holds the parts of a form that keywords outside of the subset judge, as
// forms; -1 where absent.
type fullForm struct {
	prefix            []int32
	contains          int32
	patterns          []formPattern
	names             int32
	conditionals      []formConditional
	members, elements int32 // unevaluated
}

type formPattern struct {
	pattern *pattern.Pattern
	form    int32
}

type formConditional struct{ cond, then, other int32 }

// fullForm collects these parts of a schema; nil if it has none.
func (c *classifier) fullForm(n *ir.Node) *fullForm {
	object := n.Obj != nil && n.Obj.Full != nil
	array := n.Arr != nil && n.Arr.Full != nil
	if !object && !array && n.Beyond == nil {
		return nil
	}
	f := &fullForm{contains: -1, names: -1, members: -1, elements: -1}
	if object {
		for _, p := range n.Obj.Full.Patterns {
			f.patterns = append(f.patterns, formPattern{p.Pattern, c.of(p.Node)})
		}
		f.names = c.of(n.Obj.Full.Names)
	}
	if array {
		for _, e := range n.Arr.Full.Prefix {
			f.prefix = append(f.prefix, c.of(e))
		}
		f.contains = c.of(n.Arr.Full.Contains)
	}
	if n.Beyond != nil {
		for _, k := range n.Beyond.Conditionals {
			f.conditionals = append(f.conditionals, formConditional{c.of(k.If), c.of(k.Then), c.of(k.Else)})
		}
		f.members, f.elements = c.of(n.Beyond.Members), c.of(n.Beyond.Elements)
	}
	return f
}

// appendFullKey writes what the keywords outside of the subset assert apart from their
// parts. Each is tagged, and counts come before lists.
func (c *classifier) appendFullKey(key []byte, n *ir.Node) []byte {
	if n.Num != nil && n.Num.Multiple != nil {
		key = binary.AppendUvarint(append(key, 'M'), n.Num.Multiple.Coefficient)
		key = binary.AppendVarint(key, n.Num.Multiple.Exp)
	}
	if n.Arr != nil && n.Arr.Full != nil {
		a := n.Arr.Full
		key = append(key, 'A')
		for _, v := range []int{len(a.Prefix), a.Least, a.Most} {
			key = binary.AppendUvarint(key, uint64(v))
		}
		if a.Counts {
			key = append(key, 'c')
		}
	}
	if n.Obj != nil && n.Obj.Full != nil {
		o := n.Obj.Full
		key = append(key, 'O')
		for _, v := range []int{o.Min, o.Max, len(o.Patterns), len(o.Dependents)} {
			key = binary.AppendUvarint(key, uint64(v))
		}
		for _, p := range o.Patterns {
			key = binary.AppendUvarint(key, uint64(len(p.Pattern.RE2)))
			key = append(key, p.Pattern.RE2...)
		}
		for _, d := range o.Dependents {
			key = binary.AppendUvarint(key, uint64(c.p.name(d.Name)))
			key = binary.AppendUvarint(key, uint64(len(d.Required)))
			for _, name := range d.Required {
				key = binary.AppendUvarint(key, uint64(c.p.name(name)))
			}
		}
	}
	return key
}

// appendFullParts writes the forms of these parts.
func (c *classifier) appendFullParts(n *ir.Node) {
	f := c.fullForm(n)
	if f == nil {
		return
	}
	for _, form := range f.prefix {
		c.append('t', form)
	}
	c.append('c', f.contains)
	for _, p := range f.patterns {
		c.append('~', p.form)
	}
	c.append('n', f.names)
	for _, k := range f.conditionals {
		c.append('?', k.cond)
		c.append('t', k.then)
		c.append('e', k.other)
	}
	c.append('u', f.members)
	c.append('v', f.elements)
}
