package pattern

import "regexp/syntax"

// trimSearch returns a pattern that matches somewhere in exactly the strings in
// which tree does. Parts at its two ends that may be empty are left out: a
// match of .{0,1000}x.{0,1000} begins and ends at an x. Such parts cost the
// most where nothing anchors them, since any number of them overlap.
func trimSearch(tree *syntax.Regexp) *syntax.Regexp {
	return trim(trim(tree, false), true)
}

// trim trims one end: the last or the first part of a concatenation. What is
// dropped may hold assertions; a match of the whole still implies one of the
// rest in the same string.
func trim(re *syntax.Regexp, last bool) *syntax.Regexp {
	if mayBeEmpty(re) {
		return &syntax.Regexp{Op: syntax.OpEmptyMatch}
	}
	switch re.Op {
	case syntax.OpConcat:
		sub := re.Sub
		for mayBeEmpty(end(sub, last)) {
			sub = without(sub, last)
		}
		return concat(sub, trim(end(sub, last), last), last)
	case syntax.OpAlternate:
		alternate := &syntax.Regexp{Op: syntax.OpAlternate}
		for _, sub := range re.Sub {
			alternate.Sub = append(alternate.Sub, trim(sub, last))
		}
		return alternate
	case syntax.OpPlus:
		return trim(re.Sub[0], last)
	case syntax.OpRepeat:
		if re.Min == 1 {
			return trim(re.Sub[0], last)
		}
		exact := *re
		exact.Max = re.Min
		return &exact
	}
	return re
}

// end returns the part at the end that is trimmed.
func end(sub []*syntax.Regexp, last bool) *syntax.Regexp {
	if last {
		return sub[len(sub)-1]
	}
	return sub[0]
}

// without returns the other parts.
func without(sub []*syntax.Regexp, last bool) []*syntax.Regexp {
	if last {
		return sub[:len(sub)-1]
	}
	return sub[1:]
}

// concat is a concatenation with another part at one end.
func concat(sub []*syntax.Regexp, part *syntax.Regexp, last bool) *syntax.Regexp {
	if len(sub) == 1 {
		return part
	}
	all := append([]*syntax.Regexp{}, sub...)
	if last {
		all[len(all)-1] = part
	} else {
		all[0] = part
	}
	return &syntax.Regexp{Op: syntax.OpConcat, Sub: all}
}

// mayBeEmpty reports whether a pattern matches the empty string at every place
// of every text. It may miss some.
func mayBeEmpty(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpStar, syntax.OpQuest:
		return true
	case syntax.OpRepeat:
		return re.Min == 0 || mayBeEmpty(re.Sub[0])
	case syntax.OpPlus, syntax.OpCapture:
		return mayBeEmpty(re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if !mayBeEmpty(sub) {
				return false
			}
		}
		return true
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			if mayBeEmpty(sub) {
				return true
			}
		}
	}
	return false
}
