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
	if end = SkipSpace(data, end); end < len(data) {
		return fault(data, end, msgTrailing)
	}
	return nil
}

// Scanner is [Skip] with scratch space of its own. The zero value is ready.
// It is not safe for concurrent use.
type Scanner struct {
	data  []byte
	names Names
}

// Skip is the function [Skip].
func (s *Scanner) Skip(data []byte, i, maxDepth int) (end int, err error) {
	s.data = data
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

// array scans the array at i. depth is what remains inside it.
func (s *Scanner) array(i, depth int) (int, error) {
	data := s.data
	if depth < 0 {
		return 0, TooDeep(i)
	}
	i = SkipSpace(data, i+1)
	if i < len(data) && data[i] == ']' {
		return i + 1, nil
	}
	for {
		end, err := s.value(i, depth)
		if err != nil {
			return 0, err
		}
		i = SkipSpace(data, end)
		if i >= len(data) {
			return 0, fault(data, i, msgEnd)
		}
		switch data[i] {
		case ',':
			i = SkipSpace(data, i+1)
		case ']':
			return i + 1, nil
		default:
			return 0, fault(data, i, msgArray)
		}
	}
}

// object scans the object at i. depth is what remains inside it.
func (s *Scanner) object(i, depth int) (int, error) {
	data := s.data
	if depth < 0 {
		return 0, TooDeep(i)
	}
	i = SkipSpace(data, i+1)
	if i < len(data) && data[i] == '}' {
		return i + 1, nil
	}
	scope := s.names.Open()
	for {
		end, err := s.member(&scope, i, depth)
		if err != nil {
			return 0, err
		}
		i = SkipSpace(data, end)
		if i >= len(data) {
			return 0, fault(data, i, msgEnd)
		}
		switch data[i] {
		case ',':
			i = SkipSpace(data, i+1)
		case '}':
			s.names.Close(scope)
			return i + 1, nil
		default:
			return 0, fault(data, i, msgObject)
		}
	}
}

// member scans one name, its colon and its value.
func (s *Scanner) member(scope *Scope, i, depth int) (int, error) {
	data := s.data
	if i >= len(data) || data[i] != '"' {
		return 0, fault(data, i, msgKey)
	}
	end, escaped, err := ScanString(data, i)
	if err != nil {
		return 0, err
	}
	if !s.names.Add(scope, data[i+1:end-1], escaped) {
		return 0, Duplicate(i)
	}
	i = SkipSpace(data, end)
	if i >= len(data) || data[i] != ':' {
		return 0, fault(data, i, msgColon)
	}
	return s.value(SkipSpace(data, i+1), depth)
}
