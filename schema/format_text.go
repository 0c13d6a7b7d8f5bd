package schema

// isUUID accepts the text form of RFC 9562 section 4, of every version and
// variant, with digits of either case.
func isUUID(text []byte) bool {
	if len(text) != 36 {
		return false
	}
	for i, c := range text {
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if !is(c, classHex) {
				return false
			}
		}
	}
	return true
}

// isDateTime accepts date-time of RFC 3339 section 5.6. A second 60 is
// accepted where it falls on 23:59 UTC, the only minute with leap seconds.
func isDateTime(text []byte) bool {
	const shape = "0000-00-00T00:00:00"
	if len(text) < len(shape)+1 {
		return false
	}
	for i, c := range []byte(shape) {
		switch c {
		case '0':
			if !is(text[i], classDigit) {
				return false
			}
		case 'T':
			if text[i]|0x20 != 't' {
				return false
			}
		default:
			if text[i] != c {
				return false
			}
		}
	}
	year, month, day := two(text, 0)*100+two(text, 2), two(text, 5), two(text, 8)
	hour, minute, second := two(text, 11), two(text, 14), two(text, 17)
	if month < 1 || month > 12 || day < 1 || day > daysIn(year, month) ||
		hour > 23 || minute > 59 || second > 60 {
		return false
	}
	rest := text[len(shape):]
	if rest[0] == '.' {
		end := 1
		for end < len(rest) && is(rest[end], classDigit) {
			end++
		}
		if end == 1 {
			return false
		}
		rest = rest[end:]
	}
	offset, ok := zone(rest)
	if !ok {
		return false
	}
	const day24 = 24 * 60
	utc := (hour*60 + minute - offset + 2*day24) % day24
	return second < 60 || utc == day24-1
}

// zone reads Z or a numeric offset, in minutes.
func zone(text []byte) (offset int, ok bool) {
	if len(text) == 1 {
		return 0, text[0]|0x20 == 'z'
	}
	if len(text) != 6 || text[0] != '+' && text[0] != '-' || text[3] != ':' {
		return 0, false
	}
	for _, i := range []int{1, 2, 4, 5} {
		if !is(text[i], classDigit) {
			return 0, false
		}
	}
	hour, minute := two(text, 1), two(text, 4)
	offset = hour*60 + minute
	if text[0] == '-' {
		offset = -offset
	}
	return offset, hour <= 23 && minute <= 59
}

// two reads two digits.
func two(text []byte, i int) int { return int(text[i]-'0')*10 + int(text[i+1]-'0') }

func daysIn(year, month int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}
