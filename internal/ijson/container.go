package ijson

// The functions of this file step over the punctuation of containers. Every
// reader of an object or an array, whether it validates, builds a tree or
// rewrites the text, uses the same four steps:
//
//	i, empty := Enter(data, i)
//	for more := !empty; more; {
//		nameEnd, escaped, value, err := ScanName(data, i) // in an object only
//		end, err := … // the value at offset value, or at i in an array
//		i, more, err = Next(data, end, '}')
//	}

// Enter steps into the object or array that opens at data[i] and returns the
// offset of its first name or element. An empty container has none: next is
// then the offset after its closing bracket.
func Enter(data []byte, i int) (next int, empty bool) {
	next = SkipSpace(data, i+1)
	if next < len(data) && data[next] == data[i]+2 { // in ASCII, ] is [ + 2 and } is { + 2
		return next + 1, true
	}
	return next, false
}

// ScanName scans the member name at data[i] and the colon after it. It returns
// what [ScanString] does of the name, and the offset of the member's value. It
// does not look for repeated names; see [Names].
func ScanName(data []byte, i int) (end int, escaped bool, value int, err error) {
	if i >= len(data) || data[i] != '"' {
		return 0, false, 0, fault(data, i, msgKey)
	}
	end, escaped, err = ScanString(data, i)
	if err != nil {
		return 0, false, 0, err
	}
	i = SkipSpace(data, end)
	if i >= len(data) || data[i] != ':' {
		return 0, false, 0, fault(data, i, msgColon)
	}
	return end, escaped, SkipSpace(data, i+1), nil
}

// Next steps over what follows a member or an element that ended at offset i.
// After a comma, more is true and next is the offset of the next name or
// element; after closing, which is ']' or '}', next is the offset behind it.
func Next(data []byte, i int, closing byte) (next int, more bool, err error) {
	i = SkipSpace(data, i)
	if i < len(data) {
		switch data[i] {
		case ',':
			return SkipSpace(data, i+1), true, nil
		case closing:
			return i + 1, false, nil
		}
	}
	if closing == ']' {
		return 0, false, fault(data, i, msgArray)
	}
	return 0, false, fault(data, i, msgObject)
}

// End reports whether nothing but white space follows offset i, where a text's
// only value has ended. The error is a *[SyntaxError].
func End(data []byte, i int) error {
	if i = SkipSpace(data, i); i < len(data) {
		return fault(data, i, msgTrailing)
	}
	return nil
}

// SkipValid returns the offset after the value at data[i] in a text that
// [Check] has accepted. It only counts brackets, which is faster than [Skip].
// On a text that was not accepted the result is of no use, but never beyond
// len(data).
func SkipValid(data []byte, i int) int {
	for depth := 0; i < len(data); {
		switch data[i] {
		case '{', '[':
			depth++
			i++
			continue
		case '}', ']':
			depth--
			i++
		case '"':
			end, _, err := ScanString(data, i)
			if err != nil {
				return len(data)
			}
			i = end
		case ',', ':', ' ', '\t', '\n', '\r':
			i++
			continue
		default: // a number or a literal
			for i < len(data) && !endsToken(data[i]) {
				i++
			}
		}
		if depth <= 0 {
			return i
		}
	}
	return len(data)
}

// endsToken reports whether c can follow a number or a literal.
func endsToken(c byte) bool {
	switch c {
	case ',', ']', '}', ':', ' ', '\t', '\n', '\r':
		return true
	}
	return false
}
