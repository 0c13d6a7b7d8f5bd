package format

// isUUID accepts the text form of RFC 9562 section 4, of every version and
// variant, with digits of either case. Braces and the prefix urn:uuid:, which
// some libraries accept, are not part of the form.
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
// accepted where it falls on 23:59 UTC, the only minute with leap seconds. Which
// days have had one is not checked: appendix D lists them, but the list grows.
func isDateTime(text []byte) bool {
	const shape = "0000-00-00T00:00:00"
	if len(text) <= len(shape) || !hasShape(text, shape) || !isDate(text) {
		return false
	}
	hour, minute, second := two(text, 11), two(text, 14), two(text, 17)
	if hour > 23 || minute > 59 || second > 60 {
		return false
	}
	rest, ok := cutFraction(text[len(shape):])
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
	utc := (hour*60 + minute - offset + 2*day) % day
	return second < 60 || utc == day-1
}

// hasShape reports whether text starts like shape, in which 0 stands for any
// digit and T for a letter of either case. The ABNF of RFC 3339 is case
// insensitive, as section 5.6 notes.
func hasShape(text []byte, shape string) bool {
	for i := range len(shape) {
		same := text[i] == shape[i]
		switch shape[i] {
		case '0':
			same = is(text[i], classDigit)
		case 'T':
			same = text[i]|0x20 == 't'
		}
		if !same {
			return false
		}
	}
	return true
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
