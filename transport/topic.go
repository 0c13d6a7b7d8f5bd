package transport

import "fmt"

// CheckTopic returns a [BadTopic] error for a topic that not every broker can carry:
// an empty one, one with an empty part between dots, or one with white space,
// control characters or wildcards. Every transport checks with it, so that a
// topic that works in one process also works over a broker. The error quotes the
// topic, which may contain line breaks.
func CheckTopic(op, topic string) error {
	if usualTopic(topic) {
		return nil
	}
	last := byte('.') // as if before the first part
	for i := range len(topic) {
		c := topic[i]
		if c <= ' ' || c == 0x7f || c == '*' || c == '>' || c == '.' && last == '.' {
			return &Error{Code: BadTopic, Op: op, Topic: fmt.Sprintf("%q", topic)}
		}
		last = c
	}
	switch {
	case topic == "":
		return &Error{Code: BadTopic, Op: op}
	case last == '.':
		return &Error{Code: BadTopic, Op: op, Topic: fmt.Sprintf("%q", topic)}
	}
	return nil
}

// usualTopic reports whether a topic is surely one that every broker can carry. It looks at
// eight characters at a time: a call has several topics checked, most of them long and
// random. One with characters beyond ASCII is not usual.
func usualTopic(topic string) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	if topic == "" || topic[0] == '.' || topic[len(topic)-1] == '.' {
		return false
	}
	var refused, before uint64 // before marks the last of eight that is a dot
	rest := topic
	for ; len(rest) >= 8; rest = rest[8:] {
		w := uint64(rest[0]) | uint64(rest[1])<<8 | uint64(rest[2])<<16 | uint64(rest[3])<<24 |
			uint64(rest[4])<<32 | uint64(rest[5])<<40 | uint64(rest[6])<<48 | uint64(rest[7])<<56
		// Each sum sets the highest bit of the bytes that are as they should be; no byte of
		// ASCII makes one overflow.
		fine := (w + (0x80-0x21)*ones) & ((w ^ 0x7f*ones) + 0x7f*ones) & ((w ^ '*'*ones) + 0x7f*ones) & ((w ^ '>'*ones) + 0x7f*ones)
		dots := ^((w ^ '.'*ones) + 0x7f*ones) & highs
		refused |= ^fine&highs | w&highs | dots&(dots<<8|before)
		before = dots >> 56
	}
	dot := before != 0
	for i := range len(rest) {
		c := rest[i]
		if c <= ' ' || c >= 0x7f || c == '*' || c == '>' || c == '.' && dot {
			return false
		}
		dot = c == '.'
	}
	return refused == 0
}
