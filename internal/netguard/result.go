package netguard

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/agentd/agentd/internal/ijson"
)

// maxDepth bounds how deeply the JSON of an answer is nested. A deeper one is text.
const maxDepth = 128

// A Result is a [Response] as tools show it.
type Result struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"` // names in lower case, values of one name joined by ", "
	Body    json.RawMessage   `json:"body"`    // the JSON of an answer that is JSON, else a string
}

// ResultSchema is the JSON Schema of a [Result].
const ResultSchema = `{
  "type": "object",
  "properties": {
    "status": {"type": "integer", "minimum": 100, "maximum": 599},
    "headers": {"type": "object", "additionalProperties": {"type": "string"}},
    "body": {}
  },
  "required": ["status", "headers", "body"],
  "additionalProperties": false
}`

// Result returns the answer as tools show it.
func (r *Response) Result() Result {
	result := Result{Status: r.Status, Headers: map[string]string{}}
	for name, values := range r.Header {
		result.Headers[strings.ToValidUTF8(strings.ToLower(name), "�")] = strings.ToValidUTF8(strings.Join(values, ", "), "�")
	}
	body := bytes.TrimPrefix(r.Body, []byte("\xef\xbb\xbf"))
	if r.isJSON() && ijson.Check(body, maxDepth) == nil {
		result.Body = bytes.TrimSpace(body)
		return result
	}
	result.Body = ijson.AppendQuoted(nil, r.text(body))
	return result
}

func (r *Response) isJSON() bool {
	return r.MediaType == "application/json" || r.MediaType == "text/json" || strings.HasSuffix(r.MediaType, "+json")
}

// text decodes a body. What its charset cannot explain is replaced, never dropped: the
// reader sees that something was there.
func (r *Response) text(body []byte) string {
	switch r.Charset {
	case "iso-8859-1", "latin1", "iso8859-1":
		runes := make([]rune, len(body))
		for i, b := range body {
			runes[i] = rune(b)
		}
		return string(runes)
	default:
		return strings.ToValidUTF8(string(body), "�")
	}
}
