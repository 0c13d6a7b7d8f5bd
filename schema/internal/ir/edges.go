package ir

// Here lists the schemas that judge the same value as n. A cycle among these
// would never end, so the compiler refuses it.
func (n *Node) Here() []*Node {
	if size := n.countHere(); size > 0 {
		return n.appendHere(make([]*Node, 0, size))
	}
	return nil
}

// Parts lists the schemas that judge the parts of a value that n judges. Cycles
// among these are how recursive data is described, and end with the data.
func (n *Node) Parts() []*Node {
	if size := n.countParts(); size > 0 {
		return n.appendParts(make([]*Node, 0, size))
	}
	return nil
}

// Edges lists all schemas that n leads to directly: Here, then Parts.
func (n *Node) Edges() []*Node {
	if size := n.countHere() + n.countParts(); size > 0 {
		return n.appendParts(n.appendHere(make([]*Node, 0, size)))
	}
	return nil
}

func (n *Node) countHere() (count int) {
	for _, comb := range [...]*Combinator{n.OneOf, n.AnyOf, n.AllOf} {
		if comb != nil {
			count += len(comb.Branches)
		}
	}
	if n.Not != nil || n.Ref != nil {
		count++ // never both: nothing stands beside $ref
	}
	if n.Beyond != nil {
		count += 3 * len(n.Beyond.Conditionals)
	}
	return count
}

func (n *Node) appendHere(all []*Node) []*Node {
	if n.Ref != nil {
		return append(all, n.Ref)
	}
	for _, comb := range [...]*Combinator{n.OneOf, n.AnyOf, n.AllOf} {
		if comb != nil {
			all = append(all, comb.Branches...)
		}
	}
	if n.Not != nil {
		all = append(all, n.Not)
	}
	if n.Beyond != nil {
		for _, c := range n.Beyond.Conditionals {
			all = appendPresent(all, c.If, c.Then, c.Else)
		}
	}
	return all
}

// appendPresent appends the schemas that are not nil.
func appendPresent(all []*Node, nodes ...*Node) []*Node {
	for _, n := range nodes {
		if n != nil {
			all = append(all, n)
		}
	}
	return all
}

func (n *Node) countParts() (count int) {
	if n.Obj != nil {
		count = n.Obj.Declared
		if n.Obj.Additional != nil {
			count++
		}
	}
	if n.Arr != nil && n.Arr.Items != nil {
		count++
	}
	return count + n.countFull()
}

// countFull counts the parts that keywords outside of the subset judge.
func (n *Node) countFull() (count int) {
	if n.Obj != nil && n.Obj.Full != nil {
		count += len(n.Obj.Full.Patterns) + 1
	}
	if n.Arr != nil && n.Arr.Full != nil {
		count += len(n.Arr.Full.Prefix) + 1
	}
	if n.Beyond != nil {
		count += 2
	}
	return count
}

func (n *Node) appendParts(all []*Node) []*Node {
	if n.Obj != nil {
		for i := range n.Obj.Props[:n.Obj.Declared] {
			all = append(all, n.Obj.Props[i].Node)
		}
		if n.Obj.Additional != nil {
			all = append(all, n.Obj.Additional)
		}
	}
	if n.Arr != nil && n.Arr.Items != nil {
		all = append(all, n.Arr.Items)
	}
	return n.appendFull(all)
}

// appendFull appends the parts that keywords outside of the subset judge.
func (n *Node) appendFull(all []*Node) []*Node {
	if n.Obj != nil && n.Obj.Full != nil {
		for i := range n.Obj.Full.Patterns {
			all = append(all, n.Obj.Full.Patterns[i].Node)
		}
		all = appendPresent(all, n.Obj.Full.Names)
	}
	if n.Arr != nil && n.Arr.Full != nil {
		all = appendPresent(append(all, n.Arr.Full.Prefix...), n.Arr.Full.Contains)
	}
	if n.Beyond != nil {
		all = appendPresent(all, n.Beyond.Members, n.Beyond.Elements)
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
