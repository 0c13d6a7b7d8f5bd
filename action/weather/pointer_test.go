package weather

import (
	"encoding/json"
	"testing"
)

func TestPointer(t *testing.T) {
	const body = `{"a": [{"b/c": 1, "~": 2, "~1": 3}], "": {"": 4}, "0": 5}`
	for pointer, want := range map[string]string{
		"/a/0/b~1c": "1", "/a/0/~0": "2", "/a/0/~01": "3", "//": "4", "/0": "5", "/a/1": "", "/a/-1": "", "/a/-": "", "/a/0/b~1c/x": "", "/none": "", "/a/0/0": "",
		"/a/1e0": "", "/a/ 0": "",
	} {
		if got := string(at(json.RawMessage(body), pointer)); got != want {
			t.Errorf("%s leads to %s, not %s", pointer, got, want)
		}
	}
}

// Whatever the service sends and the operator writes, what is found is a JSON value.
func FuzzPointer(f *testing.F) {
	f.Add([]byte(`{"a": [1, {"b": null}]}`), "/a/1/b")
	f.Add([]byte(`[[[]]]`), "/0/0/0")
	f.Add([]byte(`{"~": 1}`), "/~0")
	f.Fuzz(func(t *testing.T, body []byte, pointer string) {
		if !json.Valid(body) {
			return
		}
		if found := at(body, pointer); found != nil && !json.Valid(found) {
			t.Fatalf("%s in %s leads to %s", pointer, body, found)
		}
	})
}
