package record

import (
	"encoding/json"
	"errors"

	"github.com/agentd/agentd/auditchain/internal/chainhash"
	"github.com/agentd/agentd/internal/ijson"
)

// Packable reports whether the log may keep records of this kind in packs. Those are the
// kinds that every call leaves, so there are many and neighbours are alike; each other
// record has a row of its own.
func (k Kind) Packable() bool { return k == KindRPCCall || k == KindToolCall }

// A ContentReader reads contents back whose columns are those of their bodies, from bytes
// that anybody may have written. The zero value is ready. It serves one goroutine.
type ContentReader struct {
	scanner ijson.Scanner
}

var errNoObject = errors.New("a body is not a JSON object")

// Read reads the body that begins at data[i], and returns its content, with the columns
// that [Preparer.Prepare] takes from it, and the offset after it. The content is made of
// parts of data, except where a text has escapes.
func (cr *ContentReader) Read(data []byte, i int) (c chainhash.Content[[]byte], end int, err error) {
	if i >= len(data) || data[i] != '{' {
		return c, 0, errNoObject
	}
	start := i
	i, empty := ijson.Enter(data, i)
	for more := !empty; more; {
		nameEnd, _, value, err := ijson.ScanName(data, i)
		if err != nil {
			return c, 0, err
		}
		end, err := cr.scanner.Skip(data, value, ijson.DefaultMaxDepth)
		if err != nil {
			return c, 0, err
		}
		if column := columnOf(&c, data[i:nameEnd]); column != nil {
			deriveBytes(column, data[value:end])
		}
		if i, more, err = ijson.Next(data, end, '}'); err != nil {
			return c, 0, err
		}
	}
	c.Body = data[start:i:i]
	return c, i, nil
}

// columnOf returns the column that a member is copied to, nil for most members.
func columnOf(c *chainhash.Content[[]byte], name []byte) *[]byte {
	switch string(name) {
	case `"peerId"`:
		return &c.Peer
	case `"capabilityName"`:
		return &c.Capability
	case `"side"`:
		return &c.Side
	case `"correlationId"`:
		return &c.Correlation
	case `"sessionId"`:
		return &c.Session
	}
	return nil
}

// deriveBytes is [derive] for a value in bytes.
func deriveBytes(column *[]byte, value []byte) {
	if len(*column) > 0 || value[0] != '"' {
		return
	}
	text := value[1 : len(value)-1 : len(value)-1]
	for _, b := range text {
		if b == '\\' {
			var s string
			_ = json.Unmarshal(value, &s) // it has been scanned
			text = []byte(s)
			break
		}
	}
	if len(text) > 0 && checkColumn(string(text)) == nil {
		*column = text
	}
}
