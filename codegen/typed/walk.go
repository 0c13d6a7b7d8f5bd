package typed

import "github.com/agentd/agentd/internal/ijson"

// Unmarshal checks a whole text once, with [ijson.Check]. What follows only
// splits checked text into its parts. The methods of generated types can be
// called with any bytes all the same: these then give an error, or a value of
// no use, but do not panic.

// trim returns data without the white space around it, or an error if nothing
// is left.
func trim(data []byte) ([]byte, error) {
	data = data[ijson.SkipSpace(data, 0):]
	for n := len(data); n > 0 && ijson.SkipSpace(data, n-1) == n; n-- {
		data = data[:n-1]
	}
	if len(data) == 0 {
		return nil, fault("is empty")
	}
	return data, nil
}

// valueAt returns the value that starts at data[i], and the offset after it.
func valueAt(data []byte, i int) (value []byte, end int, err error) {
	if end = ijson.SkipValid(data, i); end == i {
		return nil, 0, fault("is not valid JSON")
	}
	return data[i:end], end, nil
}

// eachElement calls f with each element of the array that data starts with.
func eachElement(data []byte, f func(i int, element []byte) error) error {
	i, empty := ijson.Enter(data, 0)
	for n, more := 0, !empty; more; n++ {
		element, end, err := valueAt(data, i)
		if err == nil {
			err = f(n, element)
		}
		if err != nil {
			return err
		}
		if i, more, err = ijson.Next(data, end, ']'); err != nil {
			return invalid(err)
		}
	}
	return nil
}

// A member is one member of an object: its name, unescaped, and its value.
type member struct{ name, value []byte }

// appendMembers appends the members of the object that data starts with.
func appendMembers(dst []member, data []byte) ([]member, error) {
	i, empty := ijson.Enter(data, 0)
	for more := !empty; more; {
		nameEnd, escaped, start, err := ijson.ScanName(data, i)
		if err != nil {
			return nil, invalid(err)
		}
		name := data[i+1 : nameEnd-1]
		if escaped {
			name = ijson.AppendUnquoted(nil, name)
		}
		value, end, err := valueAt(data, start)
		if err != nil {
			return nil, err
		}
		dst = append(dst, member{name, value})
		if i, more, err = ijson.Next(data, end, '}'); err != nil {
			return nil, invalid(err)
		}
	}
	return dst, nil
}
