package ijson

// spaces has one bit set for each byte that RFC 8259 section 2 calls white
// space. It is 64 bits wide on every platform: the bit of the space character
// is number 32, which an int of 32 bits does not have.
const spaces uint64 = 1<<' ' | 1<<'\t' | 1<<'\n' | 1<<'\r'

// SkipSpace returns the offset of the first byte at or after i that is not
// white space, or len(data).
func SkipSpace(data []byte, i int) int {
	for i < len(data) && data[i] <= ' ' && spaces>>data[i]&1 != 0 {
		i++
	}
	return i
}

// ScanNumber scans the number that starts at data[i], which must be a minus
// sign or a digit, and returns the offset after it. integer reports that the
// token has neither a fraction nor an exponent; 1.0 and 1e2 have one, although
// their values are whole.
func ScanNumber(data []byte, i int) (end int, integer bool, err error) {
	if data[i] == '-' {
		i++
	}
	switch {
	case i < len(data) && data[i] == '0':
		i++ // RFC 8259 section 6 allows no digit after a leading zero
	case i < len(data) && data[i]-'1' < 9:
		i = skipDigits(data, i+1)
	default:
		return 0, false, fault(data, i, msgNumber)
	}
	switch {
	case i >= len(data):
		return i, true, nil
	case data[i] == '.' || data[i]|0x20 == 'e':
		end, err = scanFraction(data, i)
		return end, false, err
	case data[i]-'0' < 10: // a digit after a leading zero
		return 0, false, fault(data, i, msgNumber)
	}
	return i, true, nil
}

// scanFraction passes over what makes a number more than an integer token: a
// fraction, an exponent, or both.
func scanFraction(data []byte, i int) (int, error) {
	if data[i] == '.' {
		start := i + 1
		if i = skipDigits(data, start); i == start {
			return 0, fault(data, i, msgNumber)
		}
	}
	if i >= len(data) || data[i]|0x20 != 'e' {
		return i, nil
	}
	i++
	if i < len(data) && (data[i] == '+' || data[i] == '-') {
		i++
	}
	start := i
	if i = skipDigits(data, start); i == start {
		return 0, fault(data, i, msgNumber)
	}
	return i, nil
}

// skipDigits returns the offset of the first byte at or after i that is not a
// digit. The subtraction wraps around, so one comparison covers both ends of
// the range.
func skipDigits(data []byte, i int) int {
	for i < len(data) && data[i]-'0' < 10 {
		i++
	}
	return i
}

// ScanLiteral scans true, false or null at data[i] and returns the offset
// after it. It is also the scan for every byte that starts no other value, and
// for the end of data: both are the error "expected a value" or "unexpected
// end of input".
func ScanLiteral(data []byte, i int) (end int, err error) {
	if i >= len(data) {
		return 0, fault(data, i, msgEnd)
	}
	word := ""
	switch data[i] {
	case 't':
		word = "true"
	case 'f':
		word = "false"
	case 'n':
		word = "null"
	default:
		return 0, fault(data, i, msgValue)
	}
	if len(data)-i >= len(word) && string(data[i:i+len(word)]) == word {
		return i + len(word), nil
	}
	// Distinguish a literal cut off by the end of the input from a misspelt one.
	for k := range len(word) {
		if i+k >= len(data) {
			return 0, fault(data, i+k, msgEnd)
		}
		if data[i+k] != word[k] {
			break
		}
	}
	return 0, fault(data, i, msgValue)
}
