package notifier

import (
	"encoding/json"
	"net/url"
	"reflect"
	"testing"
)

// Whatever the message is, the body keeps the shape that the operator wrote.
func FuzzTemplate(f *testing.F) {
	f.Add(`{"text": "{message}", "n": 1.0, "nested": [{"a": "x {channel}: {message}"}]}`, `", "admin": true, "x": "`, false)
	f.Add(`{"To": "+1555", "Body": "{message}"}`, `a&To=%2B1900&b=`, true)
	f.Add(`"{message}"`, "{channel}{message}\r\n\x00\xff", false)
	f.Add(`{"{message}": null, "a": "{message"}`, "}", true)
	f.Fuzz(func(t *testing.T, body, message string, form bool) {
		parsed, err := parseTemplate("sms", form, json.RawMessage(body))
		if err != nil {
			return
		}
		filled, err := parsed.fill(message)
		if err != nil {
			t.Fatal(err)
		}
		blank := func(string) string { return "" }
		shape := replace(parsed.value, blank)
		if form {
			values, err := url.ParseQuery(string(filled))
			fields, _ := parsed.value.(map[string]any)
			if err != nil || len(values) != len(fields) {
				t.Fatalf("%s has the fields %q: %v", filled, values, err)
			}
			return
		}
		again, err := parseTemplate("sms", false, json.RawMessage(`[`+string(filled)+`, "{message}"]`))
		if err != nil {
			t.Fatalf("%s: %v", filled, err)
		}
		list, _ := again.value.([]any)
		if got := replace(list[0], blank); !reflect.DeepEqual(got, shape) {
			t.Fatalf("%s has the shape %v, want %v", filled, got, shape)
		}
	})
}
