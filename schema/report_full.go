package schema

import (
	"slices"
	"strconv"

	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/schema/internal/ir"
	"github.com/agentd/agentd/schema/internal/jsontree"
)

// The violations of the keywords that only the full profile has.

// sizes lists how the number of members breaks minProperties and maxProperties, and the
// members that others ask for.
func (p *reporter) sizes(o *ir.ObjectRule, present []bool, count int) {
	full := o.Full
	if count < full.Min {
		p.add(KeywordMinProperties, "object has "+strconv.Itoa(count)+" members < minProperties "+strconv.Itoa(full.Min))
	}
	if count > full.Max {
		p.add(KeywordMaxProperties, "object has "+strconv.Itoa(count)+" members > maxProperties "+strconv.Itoa(full.Max))
	}
	for _, d := range full.Dependents {
		if !present[d.At] {
			continue
		}
		for i, at := range d.Needs {
			if !present[at] {
				p.under(d.Required[i], func() {
					p.add(KeywordDependentRequired, "missing property "+strconv.Quote(truncate.String(d.Required[i], maxNameShown))+
						", which "+strconv.Quote(truncate.String(d.Name, maxNameShown))+" requires")
				})
			}
		}
	}
}

// fullMember lists how a member breaks propertyNames and the schemas that its name
// selects. at is its place among the properties, or -1; key is where its name starts.
func (p *reporter) fullMember(o *ir.ObjectRule, at int, name string, key, value int) {
	shown := p.shown(name)
	if at >= 0 && o.Props[at].Node != nil {
		shown = name
	}
	p.under(shown, func() {
		if names := o.Full.Names; names != nil && p.judge(names.Target(), key) < 0 {
			p.add(KeywordPropertyNames, "property name "+p.quoted(name)+"does not fit propertyNames")
		}
		judged := false
		if at >= 0 && o.Props[at].Node != nil {
			p.anew(o.Props[at].Node, value)
			judged = true
		}
		for _, pattern := range o.Full.Patterns {
			if p.run.MatchesName(pattern.Pattern, []byte(name)) {
				p.anew(pattern.Node, value)
				judged = true
			}
		}
		switch {
		case judged || o.Additional == nil:
		case o.Closed:
			p.add(KeywordAdditionalProperties, "additional property "+p.quoted(name)+"is not allowed")
		default:
			p.anew(o.Additional, value)
		}
	})
}

// contains lists how the elements break contains with its limits.
func (p *reporter) contains(a *ir.FullArray, items []int) {
	if a.Contains == nil {
		return
	}
	matches := 0
	for _, item := range items {
		if p.judge(a.Contains.Target(), item) >= 0 {
			matches++
		}
	}
	switch {
	case matches < a.Least:
		p.add(KeywordContains, "array contains "+strconv.Itoa(matches)+" matching items < minContains "+strconv.Itoa(a.Least))
	case matches > a.Most:
		p.add(KeywordMaxContains, "array contains "+strconv.Itoa(matches)+" matching items > maxContains "+strconv.Itoa(a.Most))
	}
}

// beyond lists how the value breaks then, else, dependentSchemas and the unevaluated
// keywords. A failing if is no violation.
func (p *reporter) beyond(n *ir.Node, i int) {
	for k := range n.Beyond.Conditionals {
		c := &n.Beyond.Conditionals[k]
		if arm := c.Arm(p.judge(c.If.Target(), i) >= 0); arm != nil {
			p.anew(arm, i)
		}
	}
	// Only what has passed everything else has been evaluated; before that, a complaint
	// about members left over would be wrong as often as right.
	left, keyword := n.Beyond.Members, KeywordUnevaluatedProperties
	switch jsontree.KindOf(p.data[i]) {
	case jsontree.Object:
	case jsontree.Array:
		left, keyword = n.Beyond.Elements, KeywordUnevaluatedItems
	default:
		return
	}
	if left == nil {
		return
	}
	p.unevaluated(n, i, func(segment string, value int) {
		message := "unevaluated item " + segment + " is not allowed"
		if keyword == KeywordUnevaluatedProperties {
			message = "unevaluated property " + p.quoted(segment) + "is not allowed"
			segment = p.shown(segment)
		}
		p.under(segment, func() {
			if left.Target().Never {
				p.add(keyword, message)
				return
			}
			p.anew(left, value)
		})
	})
}

// unevaluated calls f for the members or elements of the value at i that no other keyword
// of n judges.
func (p *reporter) unevaluated(n *ir.Node, i int, f func(segment string, value int)) {
	type left struct{ name, value int }
	var all []left
	p.run.Unevaluated(n, i, p.limits.MaxDepth, func(name, value int) bool {
		all = append(all, left{name, value})
		return true
	})
	var items []int
	if len(all) > 0 && p.data[i] == '[' {
		items = p.items(i)
	}
	for _, l := range all {
		if p.full {
			return
		}
		if l.name < 0 {
			at, _ := slices.BinarySearch(items, l.value)
			f(strconv.Itoa(at), l.value)
			continue
		}
		end, _, _ := ijson.ScanString(p.data, l.name)
		f(string(ijson.AppendUnquoted(nil, p.data[l.name+1:end-1])), l.value)
	}
}
