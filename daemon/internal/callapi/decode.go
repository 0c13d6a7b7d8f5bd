package callapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/agentd/agentd/internal/ijson"
)

// DecodeStrict decodes one JSON object. It rejects unknown and duplicate members:
// overlooking a condition would erase more than the client meant.
func DecodeStrict(r io.Reader, into any) error {
	const maxDepth = 8
	body, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return errors.New("the body is empty")
	}
	// encoding/json would accept duplicate members and use the last.
	if err := ijson.Check(body, maxDepth); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	return plain(dec.Decode(into))
}

// decodeCall decodes the body of POST /v1/request. Of the payload it only finds the
// end: the schema's validator reads it, and refuses duplicate members there. standard
// says that the body has names of the ARAL standard.
func decodeCall(body []byte, into json.Unmarshaler) (standard bool, err error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return false, errors.New("the body is empty")
	}
	if err := json.Unmarshal(body, into); err != nil {
		return false, plain(err)
	}
	i := ijson.SkipSpace(body, 0)
	if body[i] != '{' {
		return false, nil // null, which leaves everything as it is: the call is refused for that
	}
	var names ijson.Names
	scope := names.Open()
	i, empty := ijson.Enter(body, i)
	for more := !empty; more; {
		end, escaped, value, err := ijson.ScanName(body, i)
		if err != nil {
			return false, err
		}
		name := body[i+1 : end-1]
		if !names.Add(&scope, name, escaped) {
			return false, ijson.Duplicate(i)
		}
		standard = standard || isStandard(name)
		if i, more, err = ijson.Next(body, ijson.SkipValid(body, value), '}'); err != nil {
			return false, err
		}
	}
	return standard, nil
}

// plain rewrites the errors of encoding/json, which name the types of this program:
// a client knows the members of its request.
func plain(err error) error {
	if mistyped, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		member := mistyped.Field[strings.LastIndexByte(mistyped.Field, '.')+1:]
		if member == "" {
			member = "the body"
		}
		return fmt.Errorf("%s: must be %s, not %s", member, kindOf(mistyped.Type), strings.TrimPrefix(mistyped.Value, "number "))
	}
	if bad, ok := errors.AsType[*time.ParseError](err); ok {
		return fmt.Errorf("a time must be as in RFC 3339, such as 2026-01-31T12:00:00Z, not %.64s", bad.Value)
	}
	if err != nil {
		if name, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); unknown {
			return fmt.Errorf("unknown member %s", name)
		}
	}
	return err
}

// kindOf is a Go type in the words of JSON.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	default:
		return "another value"
	}
}
