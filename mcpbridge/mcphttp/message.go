package mcphttp

import (
	"encoding/json"
	"iter"
	"strconv"

	"github.com/agentd/agentd/internal/ijson"
)

const (
	versionKey    = "io.modelcontextprotocol/protocolVersion"
	maxExactInt   = 1 << 53
	maxIDBytes    = 256
	maxDepth      = 512
	methodStart   = "initialize"
	methodListen  = "subscriptions/listen"
	modernVersion = "2026-07-28" // the first revision in which each request stands alone
)

// A message is what the handler reads of a JSON-RPC message. The rest is the library's.
type message struct {
	id      json.RawMessage // nil unless the message has one
	method  string          // empty in an answer
	version string          // of _meta, where it says one
}

// call reports whether the message waits for an answer.
func (m *message) call() bool { return m.method != "" && m.id != nil }

// A malformed is a message that is refused before the library sees it.
type malformed struct {
	code int
	text string
}

const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeHeaderMismatch = -32020 // of revision 2026-07-28
	codeBusy           = -32000 // implementation-defined, as JSON-RPC has it
)

// parse reads a message. It is strict where the library is not (names that occur twice, text
// that is not UTF-8, something after the message), because what this package decides about a
// message has to be about the same message that the library then serves.
func parse(body []byte) (message, *malformed) {
	var m message
	if err := ijson.Check(body, maxDepth); err != nil {
		return m, &malformed{codeParse, err.Error()} // never repeats any of the input
	}
	start := ijson.SkipSpace(body, 0)
	switch body[start] {
	case '{':
	case '[':
		return m, &malformed{codeInvalidRequest, "batches are not supported: send one message"}
	default:
		return m, &malformed{codeInvalidRequest, "a message is an object"}
	}
	for name, value := range members(body, start) {
		switch name {
		case "id":
			if !validID(value) {
				return m, &malformed{codeInvalidRequest, "an id is a string of up to 256 bytes, or an integer between -2^53 and 2^53"}
			}
			m.id = value
		case "method":
			if m.method = text(value); m.method == "" {
				return m, &malformed{codeInvalidRequest, "a method is a string that is not empty"}
			}
		case "params":
			m.version = metaVersion(value)
		}
	}
	return m, nil
}

// metaVersion returns the protocol version in the _meta of params.
func metaVersion(params []byte) string {
	for name, meta := range members(params, 0) {
		if name != "_meta" {
			continue
		}
		for key, value := range members(meta, 0) {
			if key == versionKey {
				return text(value)
			}
		}
	}
	return ""
}

// validID reports whether the library keeps an id as it is: it reads numbers as floating-point
// ones, and two ids that become one would mix up two calls.
func validID(value []byte) bool {
	if value[0] == '"' {
		return len(value) <= maxIDBytes
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	return err == nil && n >= -maxExactInt && n <= maxExactInt
}

// members goes through the members of the object at data[i], if there is one, in a text that
// ijson.Check has accepted.
func members(data []byte, i int) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		if i >= len(data) || data[i] != '{' {
			return
		}
		i, empty := ijson.Enter(data, i)
		for more := !empty; more; {
			end, _, value, err := ijson.ScanName(data, i)
			if err != nil {
				return
			}
			value = ijson.SkipSpace(data, value)
			after := ijson.SkipValid(data, value)
			if !yield(text(data[i:end]), data[value:after]) {
				return
			}
			if i, more, err = ijson.Next(data, after, '}'); err != nil {
				return
			}
		}
	}
}

// text returns the characters of a JSON string that ijson.Check has accepted, and nothing for
// any other value.
func text(value []byte) string {
	if len(value) < 2 || value[0] != '"' {
		return ""
	}
	return string(ijson.AppendUnquoted(nil, value[1:len(value)-1]))
}
