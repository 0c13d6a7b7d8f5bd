package peertool

import (
	"encoding/json"

	"github.com/agentd/agentd/internal/ijson"
)

// spelledOut returns a schema of an object without the schemas true and false among its
// properties. The protocol's library for TypeScript refuses a whole list of tools for one
// of them, and so do the clients that are built on it; elsewhere it takes them.
func spelledOut(src json.RawMessage) json.RawMessage {
	out := make([]byte, 0, len(src))
	done := 0
	for name, at := range members(src, ijson.SkipSpace(src, 0)) {
		if name != "properties" || src[at] != '{' {
			continue
		}
		for _, value := range members(src, at) {
			written := map[byte]string{'t': `{}`, 'f': `{"not":{}}`}[src[value]]
			if written == "" {
				continue
			}
			out = append(append(out, src[done:value]...), written...)
			done = ijson.SkipValid(src, value)
		}
	}
	return append(out, src[done:]...)
}

// members iterates over the members of the object at a position in valid JSON, with where
// their values begin.
func members(src []byte, at int) func(yield func(name string, value int) bool) {
	return func(yield func(string, int) bool) {
		for i, empty := ijson.Enter(src, at); !empty; {
			end, _, value, err := ijson.ScanName(src, i)
			if err != nil || !yield(string(ijson.AppendUnquoted(nil, src[i+1:end-1])), value) {
				return
			}
			next, more, err := ijson.Next(src, ijson.SkipValid(src, value), '}')
			if err != nil {
				return
			}
			i, empty = next, !more
		}
	}
}
