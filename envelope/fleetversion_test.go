package envelope_test

import (
	"testing"

	"github.com/agentd/agentd/envelope"
)

func TestFleetVersions(t *testing.T) {
	for text, ok := range map[string]bool{
		"v1.2.3-cut": true, "v0.0.0-0": true, "v10.20.30-A1": true,
		"": false, "1.2.3-cut": false, "v1.2.3": false, "v1.2.3-": false, "v1.2-cut": false, "v1.2.3.4-cut": false, "v1.2.3-a_b": false,
		"v1.2.-1-cut": false, "v1.2.3-a-b": false, "v1.2.99999999999-a": false, "v1..3-a": false, "v1.2.3-ä": false,
	} {
		r, err := envelope.ParseFleetVersion(text)
		if (err == nil) != ok || r.IsZero() == ok {
			t.Errorf("%q: %v, %v", text, r, err)
		}
	}
	order := []string{"v0.9.9-z", "v1.0.0-z", "v1.0.1-a", "v1.1.0-a", "v2.0.0-a"}
	for i, a := range order {
		for j, b := range order {
			x, _ := envelope.ParseFleetVersion(a)
			y, _ := envelope.ParseFleetVersion(b)
			if got := x.Compare(y); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%s against %s: %d", a, b, got)
			}
		}
	}
}
