package format

import "bytes"

// isIPv6 follows RFC 4291 section 2.2. The two formats that hold addresses
// differ: most is how many groups may stand beside "::", which RFC 3986 lets
// stand for one group and RFC 5321 only for two or more, and zeros is whether
// the IPv4 part may have leading zeros.
func isIPv6(text []byte, most int, zeros bool) bool {
	head, tail, compressed := bytes.Cut(text, []byte("::"))
	before, ok := ipv6Groups(head, zeros, !compressed)
	if !ok {
		return false
	}
	// Without "::", all eight groups must be there.
	if !compressed {
		return before == 8
	}
	after, ok := ipv6Groups(tail, zeros, true)
	return ok && before+after <= most
}

// ipv6Groups counts the groups of 16 bits in a list separated by colons, which
// may be empty and may end in an IPv4 address where last is set.
func ipv6Groups(text []byte, zeros, last bool) (count int, ok bool) {
	if len(text) == 0 {
		return 0, true
	}
	for {
		group, rest, more := bytes.Cut(text, []byte(":"))
		// Only the last group of the address can be an IPv4 address, which
		// stands for two groups.
		if !more && last && bytes.IndexByte(group, '.') >= 0 {
			return count + 2, isIPv4(group, zeros)
		}
		if !isHexGroup(group) {
			return 0, false
		}
		count++
		if !more {
			return count, true
		}
		text = rest
	}
}

// isHexGroup accepts one to four hexadecimal digits, leading zeros included.
func isHexGroup(text []byte) bool {
	for _, c := range text {
		if !is(c, classHex) {
			return false
		}
	}
	return len(text) >= 1 && len(text) <= 4
}

// isIPv4 accepts four decimal numbers up to 255. RFC 3986 refuses leading
// zeros, RFC 5321 does not.
func isIPv4(text []byte, zeros bool) bool {
	for range 3 {
		part, rest, more := bytes.Cut(text, []byte("."))
		if !more || !isOctet(part, zeros) {
			return false
		}
		text = rest
	}
	return isOctet(text, zeros)
}

// isOctet accepts a decimal number up to 255, of three digits at most.
func isOctet(text []byte, zeros bool) bool {
	if len(text) < 1 || len(text) > 3 || len(text) > 1 && text[0] == '0' && !zeros {
		return false
	}
	value := 0
	for _, c := range text {
		if !is(c, classDigit) {
			return false
		}
		value = value*10 + int(c-'0')
	}
	return value <= 255
}
