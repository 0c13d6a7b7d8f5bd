package envelope

import (
	"strings"

	"github.com/agentd/agentd/internal/ijson"
)

// A span locates the content of a string in a buffer, without its quotes.
type span struct {
	start, end int
	escaped    bool
}

// A headerSpans holds the spans of header keys and values. The first eight are
// part of the decoder, which lives on the stack; only a message with more
// headers pays for an allocation.
type headerSpans struct {
	first [8][2]span
	count int
	more  [][2]span
}

func (h *headerSpans) add(key, value span) {
	if h.count < len(h.first) {
		h.first[h.count] = [2]span{key, value}
	} else {
		h.more = append(h.more, [2]span{key, value})
	}
	h.count++
}

// at returns the key and value of header i, in the order of the message.
func (h *headerSpans) at(i int) *[2]span {
	if i < len(h.first) {
		return &h.first[i]
	}
	return &h.more[i-len(h.first)]
}

// distinct reports whether the keys are certainly distinct. It gives up, and
// returns false, where that takes more than comparing a few of them byte by byte:
// with more keys than fit in first the comparison would be quadratic, and escapes
// make different bytes spell the same key.
func (h *headerSpans) distinct(data []byte) bool {
	if h.count > len(h.first) {
		return false
	}
	for i := range h.count {
		key := h.first[i][0]
		if key.escaped {
			return false
		}
		for _, other := range h.first[:i] {
			if string(data[key.start:key.end]) == string(data[other[0].start:other[0].end]) {
				return false
			}
		}
	}
	return true
}

// A Message is an envelope with room for the headers that most have, so that both take
// one allocation. Whoever is done with one may decode another message into it: strings and
// payloads that were read from it stay as they are, its Headers do not.
type Message struct {
	Envelope
	headers [4]Header
}

// Decode is [Decode] into m. After an error m has nothing that counts.
func (m *Message) Decode(data []byte) error {
	d := decoder{data: data}
	if d.usual() {
		return d.build(m)
	}
	return decodeAny(data, m)
}

// build makes m the message that the pass has found.
func (d *decoder) build(m *Message) error {
	proven := d.proof[proofKeyID].end > 0
	text := d.gather()
	cut := func(s span) string { return text[s.start:s.end] }
	*m = Message{Envelope: Envelope{
		Kind: d.kind, Deadline: d.deadline, Payload: d.payload, Auth: d.auth,
		MessageID:     cut(d.strings[fieldMessageID]),
		CorrelationID: cut(d.strings[fieldCorrelationID]),
		CausedBy:      cut(d.strings[fieldCausedBy]),
		Capability:    cut(d.strings[fieldCapability]),
		From:          Address(cut(d.strings[fieldFrom])),
		To:            Address(cut(d.strings[fieldTo])),
		ReplyTo:       cut(d.strings[fieldReplyTo]),
		TenantID:      cut(d.strings[fieldTenantID]),
	}}
	e := &m.Envelope
	if proven {
		e.Auth.KeyID, e.Auth.Signature = cut(d.proof[proofKeyID]), cut(d.proof[proofSignature])
	}
	if n := d.headers.count; n > 0 {
		if n <= len(m.headers) {
			e.Headers = m.headers[:n:n]
		} else {
			e.Headers = make(Headers, n)
		}
		for i := range e.Headers {
			h := d.headers.at(i)
			e.Headers[i] = Header{Key: cut(h[0]), Value: cut(h[1])}
		}
	}
	// Every other field has been checked during the pass. Addresses and topics
	// can only be checked once escapes have been resolved.
	var faults faultList
	if e.checkAddresses(&faults); faults != nil {
		return faults.err()
	}
	return nil
}

// gather copies all strings into a single one and moves their spans there, so
// that a message costs one allocation for all of them and does not keep the
// caller's buffer alive through a short field.
func (d *decoder) gather() string {
	size := 0
	for i := range d.strings {
		size += d.strings[i].end - d.strings[i].start
	}
	for i := range d.proof {
		size += d.proof[i].end - d.proof[i].start
	}
	for i := range d.headers.count {
		h := d.headers.at(i)
		size += h[0].end - h[0].start + h[1].end - h[1].start
	}
	g := gatherer{data: d.data}
	g.text.Grow(size) // an escape is longer than what it stands for
	for i := range d.strings {
		g.move(&d.strings[i])
	}
	for i := range d.proof {
		g.move(&d.proof[i])
	}
	for i := range d.headers.count {
		h := d.headers.at(i)
		g.move(&h[0])
		g.move(&h[1])
	}
	return g.text.String()
}

// A gatherer copies strings of a message into one text.
type gatherer struct {
	data      []byte
	text      strings.Builder
	unescaped []byte
}

// move copies a string, and makes its span that of the copy.
func (g *gatherer) move(s *span) {
	if s.start == s.end {
		*s = span{}
		return
	}
	raw, from := g.data[s.start:s.end], g.text.Len()
	if s.escaped {
		g.unescaped = ijson.AppendUnquoted(g.unescaped[:0], raw)
		raw = g.unescaped
	}
	g.text.Write(raw)
	*s = span{start: from, end: from + len(raw)}
}

// text returns the content of a string that lies in data.
func (d *decoder) text(s span) string { return string(d.raw(s)) }

// raw is text without a copy, except where the string contains escapes.
func (d *decoder) raw(s span) []byte {
	if s.escaped {
		return ijson.AppendUnquoted(nil, d.data[s.start:s.end])
	}
	return d.data[s.start:s.end]
}
