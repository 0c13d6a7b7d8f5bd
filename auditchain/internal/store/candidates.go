package store

import "bytes"

// To read a body is most of what a record of a pack costs a query, and few of them match. Which
// may, the table terms says, and so do their bytes: bodies are canonical, so a member of one value
// is written in one way.

// candidates yields the records of a pack that may be chosen, of those at some positions, in the
// order of the choice. Each is valid until the next and shares the memory of the pack. It reads
// no other body. It returns false if the consumer has stopped.
func (u *unpacker) candidates(p *pack, c *PackChoice, chosen *positions, yield func(*Record) bool) (more bool, err error) {
	// Of a pack that has nothing of what is looked for, no body need be found. To see that takes as
	// long as to look into the bodies of an eighth of its records.
	whole := chosen.count() > maxPacked/8
	if c.Text != nil && whole {
		u.lower = appendLower(u.lower[:0], p.bodies)
	}
	if whole && !c.mayBeIn(p.bodies, u.lower) {
		return true, nil
	}
	count, tenants, kinds, err := p.head()
	if err != nil {
		return false, err
	}
	from, to := max(0, c.Low+1-p.first), min(count, c.High-p.first)
	if *chosen != allPositions() {
		to = min(to, int64(chosen.last()+1))
	}
	if from >= to {
		return true, nil
	}
	if err := u.findBodies(p.bodies, int(to), int(count)); err != nil {
		return false, err
	}
	for n := range int(to - from) {
		i := int(from) + n
		if c.Descending {
			i = int(to) - 1 - n
		}
		if i < maxPacked && !chosen.has(i) {
			continue
		}
		tenant := tenants[min(i, len(tenants)-1)]
		if c.Tenant != "" && c.Tenant != string(tenant) || !u.mayMatch(p, c, i, whole) {
			continue
		}
		content, end, err := u.content.Read(p.bodies, u.ends[i]+1)
		if err != nil || end != u.ends[i+1] {
			return false, errPackBodies
		}
		r := Record{
			Peer: content.Peer, Capability: content.Capability, Side: content.Side,
			Correlation: content.Correlation, Session: content.Session, Body: content.Body,
		}
		p.complete(&r, i, tenants, kinds)
		if !yield(&r) {
			return false, nil
		}
	}
	return true, nil
}

// findBodies finds where the first bodies of an array of count end. Body i is behind the byte
// u.ends[i] and before that at u.ends[i+1].
func (u *unpacker) findBodies(array []byte, first, count int) error {
	if len(array) == 0 || array[0] != '[' {
		return errPackBodies
	}
	u.ends = append(u.ends[:0], 0)
	for i := range first {
		end := bodyEnd(array, u.ends[i]+1, i == count-1)
		if end < 0 {
			return errPackBodies
		}
		u.ends = append(u.ends, end)
	}
	return nil
}

// mayMatch reports whether a body may have what is looked for. If the pack was looked into whole,
// all bodies are in lower case already.
func (u *unpacker) mayMatch(p *pack, c *PackChoice, i int, whole bool) bool {
	body := p.bodies[u.ends[i]+1 : u.ends[i+1]]
	switch {
	case c.Text == nil:
		return c.mayBeIn(body, nil)
	case whole:
		return c.mayBeIn(body, u.lower[u.ends[i]+1:u.ends[i+1]])
	}
	u.lower = appendLower(u.lower[:0], body)
	return c.mayBeIn(body, u.lower)
}

// mayBeIn reports whether a body, or one of several, may have what is looked for. lower is the
// same in lower case, needed for a text.
func (c *PackChoice) mayBeIn(bodies, lower []byte) bool {
	for _, member := range c.Members {
		if !bytes.Contains(bodies, member) {
			return false
		}
	}
	return c.Text == nil || bytes.Contains(lower, c.Text)
}

// appendLower appends a text with its ASCII letters in lower case.
func appendLower(to, text []byte) []byte {
	n := len(to)
	to = append(to, text...)
	for i, c := range to[n:] {
		if 'A' <= c && c <= 'Z' {
			to[n+i] = c + ('a' - 'A')
		}
	}
	return to
}

// bodyEnd returns the index after the body that begins at an index of an array, -1 if none does or
// the array does not go on, or end with the last one, as the log writes it.
func bodyEnd(array []byte, at int, last bool) int {
	end := objectEnd(array, at)
	switch {
	case end < 0 || end >= len(array):
		return -1
	case last && end == len(array)-1 && array[end] == ']', !last && array[end] == ',':
		return end
	}
	return -1
}

// objectEnd returns the index after the JSON object that begins at an index, -1 if none does or it
// has no end. It does not check what is in it.
func objectEnd(text []byte, at int) int {
	if at >= len(text) || text[at] != '{' {
		return -1
	}
	depth := 0
	for i := at; i < len(text); i++ {
		switch text[i] {
		case '"':
			if i = stringEnd(text, i); i < 0 {
				return -1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// stringEnd returns the index of the quotation mark that ends the JSON string which begins at an
// index, -1 if none does. It leaps from mark to mark: strings are most of a body.
func stringEnd(text []byte, start int) int {
	for at := start + 1; ; {
		n := bytes.IndexByte(text[at:], '"')
		if n < 0 {
			return -1
		}
		at += n
		escapes := 0
		for text[at-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return at
		}
		at++
	}
}
