package jcs

import "github.com/agentd/agentd/internal/ijson"

// Most of what is brought into canonical form has it already: the records of calls, which
// agentd writes as such. To see that takes a fraction of what writing them again does.
//
// The functions of this file return the end of the value at src[i] if it is surely in
// canonical form, and 0 if it may not be: it is not, or has escapes, negative or long
// numbers, or deep nesting, all of which are rare.

// usualDepth bounds the nesting of usual values.
const usualDepth = 8

func (a *Appender) usualEnd(src []byte, i, depth int) int {
	if i >= len(src) {
		return 0
	}
	switch c := src[i]; {
	case c == '"':
		return max(ijson.PlainEnd(src, i+1)+1, 0)
	case '0' <= c && c <= '9':
		return usualNumberEnd(src, i)
	case depth == 0:
		return 0
	case c == '{':
		return a.usualObjectEnd(src, i, depth-1)
	case c == '[':
		return a.usualArrayEnd(src, i, depth-1)
	}
	end, err := ijson.ScanLiteral(src, i)
	if err != nil {
		return 0
	}
	return end
}

func (a *Appender) usualObjectEnd(src []byte, i, depth int) int {
	if i+1 < len(src) && src[i+1] == '}' {
		return i + 2
	}
	var before []byte // the last name
	for first := true; ; first = false {
		from := i + 1
		if from >= len(src) || src[from] != '"' {
			return 0
		}
		end := ijson.PlainEnd(src, from+1)
		if end < 0 || end+1 >= len(src) || src[end+1] != ':' {
			return 0
		}
		name := src[from+1 : end]
		if !first && compareUTF16(before, name) >= 0 {
			return 0
		}
		before = name
		if i = a.usualEnd(src, end+2, depth); i == 0 || i >= len(src) {
			return 0
		}
		if depth == usualDepth-1 { // the object is not in another value
			a.top = append(a.top, Member{Name: from, Value: end + 2, End: i})
		}
		if src[i] == '}' {
			return i + 1
		}
		if src[i] != ',' {
			return 0
		}
	}
}

func (a *Appender) usualArrayEnd(src []byte, i, depth int) int {
	if i+1 < len(src) && src[i+1] == ']' {
		return i + 2
	}
	for {
		if i = a.usualEnd(src, i+1, depth); i == 0 || i >= len(src) {
			return 0
		}
		if src[i] == ']' {
			return i + 1
		}
		if src[i] != ',' {
			return 0
		}
	}
}

// A usual number has so many digits, and so many of them behind the point, at most: of the
// smallest one ECMAScript still prints no exponent.
const usualDigits, usualFraction = 15, 6

func usualNumberEnd(src []byte, i int) int {
	end := digitsEnd(src, i)
	whole := end - i
	if whole > usualDigits || src[i] == '0' && whole > 1 {
		return 0
	}
	if end == len(src) || src[end] != '.' {
		return end // before an exponent, too: nothing takes an e there
	}
	i, end = end+1, digitsEnd(src, end+1)
	if fraction := end - i; fraction == 0 || fraction > usualFraction || whole+fraction > usualDigits || src[end-1] == '0' {
		return 0
	}
	return end
}

func digitsEnd(src []byte, i int) int {
	for i < len(src) && '0' <= src[i] && src[i] <= '9' {
		i++
	}
	return i
}
