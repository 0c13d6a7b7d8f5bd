package trace

import (
	"regexp"
	"strings"
	"testing"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// A child keeps its parent's trace id and flags, and has a span of its own.
func TestChild(t *testing.T) {
	form := regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-01$`)
	a, b := Child(parent), Child(parent)
	if !form.MatchString(a) || a[:36] != parent[:36] || a[52:] != parent[52:] || a == parent || a == b {
		t.Errorf("the children are %s and %s", a, b)
	}
	if got := Child(strings.Replace(parent, "-01", "-00", 1)); !strings.HasSuffix(got, "-00") {
		t.Errorf("a trace that is not sampled goes on as %s", got)
	}
}

// Without a valid parent a trace of its own begins (Trace Context, section 4.3).
func TestTraceBegins(t *testing.T) {
	form := regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-00$`) // nobody records it
	seen := map[string]bool{}
	for _, malformed := range []string{
		"", parent[:54], parent + "0", parent + "-0", "ff" + parent[2:], "cc" + parent[2:] + ".0",
		"00-00000000000000000000000000000000-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
		strings.ToUpper(parent), strings.Replace(parent, "-", "_", 1),
		strings.Replace(parent, "0af", "-af", 1), strings.Replace(parent, "0af", "0gf", 1), strings.Replace(parent, "0af", "0:f", 1),
		strings.Replace(parent, "0af", "0`f", 1), strings.Replace(parent, "0af", "/af", 1),
	} {
		got := Child(malformed)
		if !form.MatchString(got) || seen[got[3:35]] || got[3:35] == parent[3:35] {
			t.Errorf("%q goes on as %s", malformed, got)
		}
		seen[got[3:35]] = true
		if id := ID(malformed); id != "" {
			t.Errorf("%q has the trace id %s", malformed, id)
		}
		if ID(got) != got[3:35] || strings.Trim(got[3:35], "0") == "" || strings.Trim(got[36:52], "0") == "" {
			t.Errorf("the new trace %s is not valid", got)
		}
	}
	if id := ID(parent); id != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("trace id %s", id)
	}
}

// A parent of a later version, which may be longer, goes on in version 00.
func TestLaterVersion(t *testing.T) {
	for _, later := range []string{"cc" + parent[2:], "01" + parent[2:] + "-what-comes-later"} {
		if got := Child(later); got[:36] != parent[:36] || got[52:] != parent[52:] || len(got) != len(parent) {
			t.Errorf("%s goes on as %s", later, got)
		}
	}
}

// A trace can be named by its id alone, also in the form of a UUID.
func TestFromID(t *testing.T) {
	const id = "0af7651916cd43dd8448eb211c80319c"
	for _, text := range []string{id, strings.ToUpper(id), "0af76519-16cd-43dd-8448-eb211c80319c", "0AF76519-16CD-43DD-8448-EB211C80319C"} {
		if got, ok := FromID(text); !ok || ID(got) != id {
			t.Errorf("%s names %s, %v", text, got, ok)
		}
	}
	for _, text := range []string{
		"", id[1:], id + "0", "0af76519-16cd43dd-8448-eb211c80319c", "0af7651916cd-43dd-8448-eb211c80319c0000", "uuid", strings.Repeat("0", 32),
		"0af7651916cd43dd8448eb211c80319g", parent, "0af76519-16cd-43dd-8448-eb211c8031-9",
	} {
		if got, ok := FromID(text); ok || got != "" {
			t.Errorf("%q names %s", text, got)
		}
	}
}

func TestPutHex(t *testing.T) {
	var b [16]byte
	putHex(b[:], 0x0123456789abcdef)
	if string(b[:]) != "0123456789abcdef" {
		t.Errorf("%s", b[:])
	}
}

// Every byte at every place is what the grammar says.
func TestValid(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)
	for i := range len(parent) {
		for c := range 256 {
			b := []byte(parent)
			b[i] = byte(c)
			if got, want := Valid(string(b)), form.Match(b); got != want {
				t.Errorf("Valid(%q) = %v", b, got)
			}
		}
	}
}

func BenchmarkValid(b *testing.B) {
	var all [64]string
	for i := range all {
		all[i] = New(true)
	}
	for i := 0; b.Loop(); i++ {
		if !Valid(all[i%len(all)]) {
			b.Fatal("a trace that has begun is not valid")
		}
	}
}
