package typed

// The scanner splits JSON that is known to be valid into its parts, without
// copying. On other input its answers are useless, but it stays in bounds.

// trim cuts the space around a value.
func trim(data []byte) []byte {
	for len(data) > 0 && isSpace(data[0]) {
		data = data[1:]
	}
	for len(data) > 0 && isSpace(data[len(data)-1]) {
		data = data[:len(data)-1]
	}
	return data
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// skipSpace is the index of the first byte from i on that is no space.
func skipSpace(data []byte, i int) int {
	for i < len(data) && isSpace(data[i]) {
		i++
	}
	return i
}

// skipString is the index behind the string that starts at i.
func skipString(data []byte, i int) int {
	for i++; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}

// skipValue is the index behind the value that starts at i.
func skipValue(data []byte, i int) int {
	depth := 0
	for i < len(data) {
		switch data[i] {
		case '"':
			i = skipString(data, i)
		case '{', '[':
			depth++
			i++
			continue
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\n', '\t', '\r':
			i++
			continue
		default:
			for i < len(data) && !isEnd(data[i]) {
				i++
			}
		}
		if depth <= 0 {
			return i
		}
	}
	return len(data)
}

// isEnd reports whether c ends a number or a word.
func isEnd(c byte) bool { return isSpace(c) || c == ',' || c == '}' || c == ']' || c == ':' }

// elements calls f with each element of the array that data holds.
func elements(data []byte, f func(i int, element []byte) error) error {
	at := skipSpace(data, 1)
	for n := 0; at < len(data) && data[at] != ']'; n++ {
		end := skipValue(data, at)
		if err := f(n, data[at:end]); err != nil {
			return err
		}
		if at = skipSpace(data, end); at < len(data) && data[at] == ',' {
			at = skipSpace(data, at+1)
		}
	}
	return nil
}

// members calls f with each member of the object that data holds: its name,
// between quotes, and its value.
func members(data []byte, f func(name, value []byte)) {
	at := skipSpace(data, 1)
	for at < len(data) && data[at] == '"' {
		end := skipString(data, at)
		name := data[at:end]
		at = skipSpace(data, end)
		at = skipSpace(data, at+1) // behind the colon
		if at >= len(data) {
			return
		}
		end = skipValue(data, at)
		f(name, data[at:end])
		if at = skipSpace(data, end); at < len(data) && data[at] == ',' {
			at = skipSpace(data, at+1)
		}
	}
}
