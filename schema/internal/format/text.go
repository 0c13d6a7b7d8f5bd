package format

import "encoding/binary"

// isUUID accepts the text form of RFC 9562 section 4, of every version and
// variant, with digits of either case. Braces and the prefix urn:uuid:, which
// some libraries accept, are not part of the form.
func isUUID(text []byte) bool {
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return false
	}
	// Nearly all texts of this length are UUIDs: asking once is faster than asking of
	// each digit.
	all := uint8(classHex)
	for i := range 4 {
		all &= byteClass[text[i]] & byteClass[text[i+4]] & byteClass[text[i+9]] & byteClass[text[i+14]] &
			byteClass[text[i+19]] & byteClass[text[i+24]] & byteClass[text[i+28]] & byteClass[text[i+32]]
	}
	return all != 0
}

// isDateTime accepts date-time of RFC 3339 section 5.6. A second 60 is
// accepted where it falls on 23:59 UTC, the only minute with leap seconds. Which
// days have had one is not checked: appendix D lists them, but the list grows.
func isDateTime(text []byte) bool {
	const size = len("0000-00-00T00:00:00")
	if len(text) <= size || !hasTimeShape(text) || !isDate(text) {
		return false
	}
	hour, minute, second := two(text, 11), two(text, 14), two(text, 17)
	if hour > 23 || minute > 59 || second > 60 {
		return false
	}
	rest, ok := cutFraction(text[size:])
	if !ok {
		return false
	}
	offset, ok := zone(rest)
	if !ok {
		return false
	}
	// Two days are added because an offset can move the time back past
	// midnight, and Go's remainder keeps the sign.
	const day = 24 * 60 // minutes
	return second < 60 || (hour*60+minute-offset+2*day)%day == day-1
}

// hasTimeShape reports whether the first 19 bytes of text look like 0000-00-00T00:00:00, in
// which 0 stands for any digit and T for a letter of either case. The ABNF of RFC 3339
// is case insensitive, as section 5.6 notes.
func hasTimeShape(text []byte) bool {
	const lowerT = 0x20 << 16
	return hasDateShape(text) &&
		fits(binary.LittleEndian.Uint64(text[8:])|lowerT, 0x30303A3030743030, 0x76767F76767F7676) &&
		text[16] == ':' && is(text[17], classDigit) && is(text[18], classDigit)
}

// hasDateShape reports whether the first ten bytes of text look like 0000-00-00.
func hasDateShape(text []byte) bool {
	return fits(binary.LittleEndian.Uint64(text), 0x2D30302D30303030, 0x7F76767F76767676) &&
		is(text[8], classDigit) && is(text[9], classDigit)
}

// fits compares eight bytes at once with a shape. Where the shape has a 0, the room up
// to the highest bit is for nine more; elsewhere it is for none.
func fits(bytes, shape, room uint64) bool {
	above := bytes ^ shape
	return (above|(above+room))&0x8080808080808080 == 0
}

// isDate reports whether the ten digits and dashes at the start name a day of
// the Gregorian calendar, which RFC 3339 extends back to year 0.
func isDate(text []byte) bool {
	year, month, day := two(text, 0)*100+two(text, 2), two(text, 5), two(text, 8)
	return month >= 1 && month <= 12 && day >= 1 && day <= daysIn(year, month)
}

// cutFraction removes a fraction of a second, which needs at least one digit and
// may have any number. text is not empty: the caller has seen more than a time.
func cutFraction(text []byte) (rest []byte, ok bool) {
	if text[0] != '.' {
		return text, true
	}
	end := 1
	for end < len(text) && is(text[end], classDigit) {
		end++
	}
	return text[end:], end > 1
}

// zone reads Z or a numeric offset, in minutes.
func zone(text []byte) (offset int, ok bool) {
	// "Z" and "z" mean an offset of zero.
	if len(text) == 1 {
		return 0, text[0]|0x20 == 'z'
	}
	if len(text) != 6 || text[0] != '+' && text[0] != '-' || text[3] != ':' {
		return 0, false
	}
	if byteClass[text[1]]&byteClass[text[2]]&byteClass[text[4]]&byteClass[text[5]]&classDigit == 0 {
		return 0, false
	}
	hour, minute := two(text, 1), two(text, 4)
	offset = hour*60 + minute
	if text[0] == '-' {
		offset = -offset
	}
	return offset, hour <= 23 && minute <= 59
}

// two reads the two digits at i, which the caller has checked.
func two(text []byte, i int) int { return int(text[i]-'0')*10 + int(text[i+1]-'0') }

// daysIn returns the length of a month, 29 for February in leap years (RFC
// 3339 appendix C).
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
