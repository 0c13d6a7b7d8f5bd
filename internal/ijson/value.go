package ijson

import "sync"

// DefaultMaxDepth is the depth bound for callers without a reason to choose
// another.
const DefaultMaxDepth = 512

// scanners keeps scratch space between calls, so that scanning a valid value
// allocates nothing.
//
//nolint:gochecknoglobals // scratch space, reset at each use; no state survives a call
var scanners = sync.Pool{New: func() any { return new(Scanner) }}

// Skip scans the value that starts at or after offset i, past any white
// space, and returns the offset after it. maxDepth bounds how many containers
// may be open at once; with 0 only scalars pass. The error is a *[SyntaxError].
func Skip(data []byte, i, maxDepth int) (end int, err error) {
	s := scanners.Get().(*Scanner)
	end, err = s.Skip(data, i, maxDepth)
	s.Trim()
	scanners.Put(s)
	return end, err
}

// Check reports whether data is exactly one value, surrounded by nothing but
// white space. The error is a *[SyntaxError].
func Check(data []byte, maxDepth int) error {
	end, err := Skip(data, 0, maxDepth)
	if err != nil {
		return err
	}
	return End(data, end)
}

// Scanner is [Skip] with scratch space of its own. The zero value is ready.
// It is not safe for concurrent use.
type Scanner struct {
	data  []byte
	names Names
}

// Skip is the function [Skip].
func (s *Scanner) Skip(data []byte, i, maxDepth int) (end int, err error) {
	s.data = data[:len(data):len(data)] // nobody reads behind it
	s.names.Reset()
	end, err = s.value(SkipSpace(data, i), maxDepth)
	s.data = nil
	return end, err
}

// Trim gives up scratch space that an unusually large value has made grow.
func (s *Scanner) Trim() { s.names.Trim() }

// value scans the value at i, where no white space stands. depth is the
// number of containers that may still open.
func (s *Scanner) value(i, depth int) (int, error) {
	data := s.data
	if i >= len(data) {
		return 0, fault(data, i, msgEnd)
	}
	switch data[i] {
	case '"':
		if end := PlainEnd(data, i+1); end >= 0 {
			return end + 1, nil
		}
		end, _, err := ScanString(data, i)
		return end, err
	case '{':
		return s.object(i, depth-1)
	case '[':
		return s.array(i, depth-1)
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		end, _, err := ScanNumber(data, i)
		return end, err
	}
	return ScanLiteral(data, i)
}

// array scans the array at i. depth is how many containers may open inside it;
// below 0, the array itself is one too many.
func (s *Scanner) array(i, depth int) (int, error) {
	if depth < 0 {
		return 0, TooDeep(i)
	}
	data := s.data
	i, empty := Enter(data, i)
	for more := !empty; more; {
		end, err := s.value(i, depth)
		if err != nil {
			return 0, err
		}
		// A comma comes next nearly always, and Next is a call: it is too large
		// for the compiler to inline.
		if i = SkipSpace(data, end); i < len(data) && data[i] == ',' {
			i = SkipSpace(data, i+1)
			continue
		}
		if i, more, err = Next(data, i, ']'); err != nil {
			return 0, err
		}
	}
	return i, nil
}

// object scans the object at i. depth is as in array.
func (s *Scanner) object(i, depth int) (int, error) {
	if depth < 0 {
		return 0, TooDeep(i)
	}
	data := s.data
	i, empty := Enter(data, i)
	if empty {
		return i, nil
	}
	scope := s.names.Open()
	for more := true; more; {
		raw, escaped, value, err := scanMember(data, i)
		if err != nil {
			return 0, err
		}
		if !s.names.Add(&scope, raw, escaped) {
			return 0, Duplicate(i)
		}
		end, err := s.value(value, depth)
		if err != nil {
			return 0, err
		}
		if i = SkipSpace(data, end); i < len(data) && data[i] == ',' { // as in array
			i = SkipSpace(data, i+1)
			continue
		}
		if i, more, err = Next(data, i, '}'); err != nil {
			return 0, err
		}
	}
	s.names.Close(scope)
	return i, nil
}

// scanMember scans the member name at data[i] and the colon after it. It returns the raw
// content of the name, whether it holds a backslash, and the offset of the value. A
// plain name with its colon right behind it, which nearly all are, takes no second look.
func scanMember(data []byte, i int) (raw []byte, escaped bool, value int, err error) {
	if i < len(data) && data[i] == '"' {
		end := PlainEnd(data, i+1)
		if end >= 0 && end+1 < len(data) && data[end+1] == ':' {
			return data[i+1 : end], false, SkipSpace(data, end+2), nil
		}
	}
	end, escaped, value, err := ScanName(data, i)
	if err != nil {
		return nil, false, 0, err
	}
	return data[i+1 : end-1], escaped, value, nil
}
