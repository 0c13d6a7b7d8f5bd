package ijson

import "bytes"

// IsAbsent reports whether data, between white space, is null or nothing at all:
// the payload of a call without arguments.
func IsAbsent(data []byte) bool {
	i := SkipSpace(data, 0)
	rest, isNull := bytes.CutPrefix(data[i:], []byte("null"))
	if !isNull {
		return i == len(data)
	}
	return SkipSpace(rest, 0) == len(rest)
}
