package jsonptr

import "testing"

func TestEscapes(t *testing.T) {
	for name, segment := range map[string]string{"": "", "a": "a", "/": "~1", "~": "~0", "~1": "~01", "a/b~0": "a~1b~00", "~~//": "~0~0~1~1"} {
		if got := Escape(name); got != segment {
			t.Errorf("%q is escaped as %q", name, got)
		}
		if got := Unescape(segment); got != name {
			t.Errorf("%q is unescaped as %q", segment, got)
		}
	}
}
