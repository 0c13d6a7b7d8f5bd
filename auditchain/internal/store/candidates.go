package store

import "bytes"

// To read a body is most of what a record of a pack costs a query, and few of them match. Their
// bytes say which may: bodies are canonical, so a member of one value is written in one way.

// candidates returns the records of a pack that may be chosen, which are valid until the next call
// and share the memory of the pack. It reads no other body.
func (u *unpacker) candidates(p *pack, c *PackChoice) ([]Record, error) {
	if len(c.Members) == 0 && c.Text == nil && c.Tenant == "" {
		return u.read(p)
	}
	if c.Text != nil {
		u.lower = appendLower(u.lower[:0], p.bodies)
	}
	if !c.mayBeIn(p.bodies, u.lower) {
		return nil, nil
	}
	count, tenants, kinds, err := p.head()
	if err != nil {
		return nil, err
	}
	if len(p.bodies) == 0 || p.bodies[0] != '[' {
		return nil, errPackBodies
	}
	u.records = u.records[:0]
	for i, at := 0, 1; i < int(count); i++ {
		end := bodyEnd(p.bodies, at, i == int(count)-1)
		if end < 0 {
			return nil, errPackBodies
		}
		lower := u.lower
		if c.Text != nil {
			lower = lower[at:end]
		}
		tenant := tenants[min(i, len(tenants)-1)]
		if (c.Tenant == "" || c.Tenant == string(tenant)) && c.mayBeIn(p.bodies[at:end], lower) {
			content, read, err := u.content.Read(p.bodies, at)
			if err != nil || read != end {
				return nil, errPackBodies
			}
			u.records = append(u.records, Record{
				Peer: content.Peer, Capability: content.Capability, Side: content.Side,
				Correlation: content.Correlation, Session: content.Session, Body: content.Body,
			})
			p.complete(&u.records[len(u.records)-1], i, tenants, kinds)
		}
		at = end + 1
	}
	return u.records, nil
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
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
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
