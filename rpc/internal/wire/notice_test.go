package wire

import (
	"strings"
	"testing"
)

// Anybody on the broker may send a notice: only one of the right form is heard.
func TestParseNotice(t *testing.T) {
	n, err := ParseNotice([]byte(`{"agent":"agent://a","revision":"sha256:1","later":{}}`))
	if err != nil || n.Agent != "agent://a" || n.Revision != "sha256:1" {
		t.Errorf("%+v, %v", n, err)
	}
	for _, text := range []string{
		``, `null`, `[]`, `{}`, `{"agent":"a b"}`, `{"agent":7}`, `{"agent":"agent://a","revision":1}`, `{"agent":"agent://a","agent":"agent://b"}`,
		`{"agent":"agent://a","revision":"` + strings.Repeat("x", maxNotice) + `"}`,
	} {
		if n, err := ParseNotice([]byte(text)); err == nil {
			t.Errorf("%.60s is the notice %+v", text, n)
		}
	}
}
