package ijson

import "strconv"

// A SyntaxError describes where and why a text is not acceptable JSON. Its message
// comes from a fixed set and never repeats any of the input.
type SyntaxError struct {
	// Offset is the byte offset in the scanned text at which the fault shows.
	Offset int
	// Msg is the rule that was broken, such as "duplicate key".
	Msg string
}

// Error returns the fault in the form `invalid JSON at byte 17: duplicate key`.
func (e *SyntaxError) Error() string {
	return "invalid JSON at byte " + strconv.Itoa(e.Offset) + ": " + e.Msg
}

// The messages, all there are.
const (
	msgEnd       = "unexpected end of input"
	msgValue     = "expected a value"
	msgTrailing  = "unexpected data after the value"
	msgKey       = "expected a member name in double quotes"
	msgColon     = "expected ':' after a member name"
	msgObject    = "expected ',' or '}' after a member"
	msgArray     = "expected ',' or ']' after an element"
	msgNumber    = "malformed number"
	msgControl   = "control character in a string"
	msgUTF8      = "invalid UTF-8"
	msgEscape    = "unknown escape in a string"
	msgSurrogate = "lone surrogate in a string"
	msgDuplicate = "duplicate key"
	msgDepth     = "nested too deeply"
)

// fault builds the error for offset i, or for the end of data when i is there
// or beyond: a text that stops early is reported as such, whatever was expected.
func fault(data []byte, i int, msg string) error {
	if i >= len(data) {
		i, msg = len(data), msgEnd
	}
	return &SyntaxError{Offset: i, Msg: msg}
}

// Duplicate returns the error for a repeated member name at offset i, for
// callers that keep track of names themselves.
func Duplicate(i int) error { return &SyntaxError{Offset: i, Msg: msgDuplicate} }

// TooDeep returns the error for a container at offset i that exceeds a depth
// bound, for callers that walk containers themselves.
func TooDeep(i int) error { return &SyntaxError{Offset: i, Msg: msgDepth} }
