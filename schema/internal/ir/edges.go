package ir

// Here lists the schemas that judge the same value as n. A cycle among these
// would never end, so the compiler refuses it.
func (n *Node) Here() []*Node {
	if n.Ref != nil {
		return []*Node{n.Ref}
	}
	var all []*Node
	for _, comb := range []*Combinator{n.OneOf, n.AnyOf, n.AllOf} {
		if comb != nil {
			all = append(all, comb.Branches...)
		}
	}
	if n.Not != nil {
		all = append(all, n.Not)
	}
	return all
}

// Below lists the schemas that judge the parts of a value that n judges. Cycles
// among these are how recursive data is described, and end with the data.
func (n *Node) Below() []*Node {
	var all []*Node
	if n.Obj != nil {
		for _, p := range n.Obj.Props[:n.Obj.Declared] {
			all = append(all, p.Node)
		}
		if n.Obj.Additional != nil {
			all = append(all, n.Obj.Additional)
		}
	}
	if n.Arr != nil && n.Arr.Items != nil {
		all = append(all, n.Arr.Items)
	}
	return all
}

// Tags returns the strings to which const or enum fixes a value; nil where
// other values may pass.
func (n *Node) Tags() []string {
	rule := n.Constant
	if rule == nil {
		rule = n.Enum
	}
	// Values of other kinds could pass as well, or none is fixed.
	if rule == nil || rule.Kinds != TypeString {
		return nil
	}
	var tags []string
	for _, l := range rule.Values {
		tags = append(tags, l.Text)
	}
	return tags
}
