package notifier

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
)

// messageMark and channelMark stand for the caller's text and its channel.
const (
	messageMark = "{message}"
	channelMark = "{channel}"
)

const defaultBody = `{"channel": "` + channelMark + `", "message": "` + messageMark + `"}`

// A template is the body of a webhook's request with marks in its texts.
type template struct {
	channel string
	form    bool
	value   any
}

// parseTemplate reads a body. The message must have a place in it.
func parseTemplate(channel string, form bool, body json.RawMessage) (template, error) {
	if len(body) == 0 {
		body = json.RawMessage(defaultBody)
	}
	t := template{channel: channel, form: form}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber() // the digits are the operator's
	if err := decoder.Decode(&t.value); err != nil || decoder.More() {
		return t, errors.New("it is not one JSON value")
	}
	if form {
		fields, ok := t.value.(map[string]any)
		for _, field := range fields {
			_, text := field.(string)
			ok = ok && text
		}
		if !ok {
			return t, errors.New("that of a form is an object of texts")
		}
	}
	found := false
	replace(t.value, func(s string) string {
		found = found || strings.Contains(s, messageMark)
		return s
	})
	if !found {
		return t, errors.New("none of its texts has the mark " + messageMark)
	}
	return t, nil
}

// fill returns the body with a message in it.
func (t template) fill(message string) ([]byte, error) {
	// One pass: what stands in for one mark is not searched for the other.
	filled := replace(t.value, strings.NewReplacer(messageMark, message, channelMark, t.channel).Replace)
	if fields, ok := filled.(map[string]any); ok && t.form {
		values := url.Values{}
		for name, field := range fields {
			text, _ := field.(string) // parseTemplate saw to it
			values.Set(name, text)
		}
		return []byte(values.Encode()), nil
	}
	return json.Marshal(filled)
}

// replace returns a copy of a JSON value with each text changed. Names stay.
func replace(value any, change func(string) string) any {
	switch v := value.(type) {
	case string:
		return change(v)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = replace(item, change)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			out[name] = replace(member, change)
		}
		return out
	default:
		return value
	}
}
