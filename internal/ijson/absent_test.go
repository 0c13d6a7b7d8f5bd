package ijson_test

import (
	"testing"

	"github.com/agentd/agentd/internal/ijson"
)

func TestIsAbsent(t *testing.T) {
	for _, data := range []string{"", " \r\n\t", "null", " null\n", "\tnull"} {
		if !ijson.IsAbsent([]byte(data)) {
			t.Errorf("%q is something", data)
		}
	}
	for _, data := range []string{"{}", "nul", "nulls", "null null", "null,", "0", `""`, `"null"`, "[]", "\u00a0null", "\x00", "NULL"} {
		if ijson.IsAbsent([]byte(data)) {
			t.Errorf("%q is nothing", data)
		}
	}
}
