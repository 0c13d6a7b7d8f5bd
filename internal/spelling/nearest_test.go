package spelling

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNearest(t *testing.T) {
	known := []string{"timeoutMs", "inputSchema", "outputSchema", "name", "id"}
	for name, want := range map[string]string{
		"timeout_ms": "timeoutMs", "timeoutms": "timeoutMs", "timoutMs": "timeoutMs", "InputSchema": "inputSchema",
		"nmae": "name", "output": "outputSchema", "nam": "name", "di": "id", "x": "", "description": "", "": "",
		"input": "inputSchema", "in": "id", "i-d": "id", "nime": "name", "nixx": "", "tame": "name",
		strings.Repeat("n", 1<<20): "",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("Nearest(%.20q) = %q, want %q", name, got, want)
		}
	}
}

// The same letters in another case win over one edit, and the first of two
// that are equally near wins.
func TestNearestPrefers(t *testing.T) {
	for _, c := range []struct {
		name  string
		known []string
		want  string
	}{
		{"Type", []string{"typo", "type"}, "type"},
		{"typ", []string{"type", "typo"}, "type"},
		{"typ", []string{"typo", "type"}, "typo"},
		{"abcd", []string{strings.Repeat("abcd", 20), "abcx"}, "abcx"}, // too long to compare
		{strings.Repeat("a", 64), []string{strings.Repeat("a", 63) + "b"}, strings.Repeat("a", 63) + "b"},
		{strings.Repeat("a", 65), []string{strings.Repeat("a", 64)}, ""},
	} {
		if got := Nearest(c.name, c.known); got != c.want {
			t.Errorf("Nearest(%q, %q) = %q, want %q", c.name, c.known, got, c.want)
		}
	}
}

func TestDidYouMean(t *testing.T) {
	if got, want := DidYouMean("nmae", []string{"name"}), `did you mean "name"?`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := DidYouMean("zzz", []string{"name"}); got != "" {
		t.Errorf("got %s for a name that is near nothing", got)
	}
}

// The distance is the recursive definition's, computed with no table.
func TestDistance(t *testing.T) {
	word := rapid.StringOfN(rapid.RuneFrom([]rune("abc")), 0, 6, -1)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		if got, want := distance(a, b), definition(a, b); got != want || distance(b, a) != want {
			t.Fatalf("distance(%q, %q) = %d, want %d, in both directions", a, b, got, want)
		}
	})
}

func definition(a, b string) int {
	if a == "" || b == "" {
		return len(a) + len(b)
	}
	i, j := len(a)-1, len(b)-1
	cost := 1
	if a[i] == b[j] {
		cost = 0
	}
	d := min(definition(a[:i], b)+1, definition(a, b[:j])+1, definition(a[:i], b[:j])+cost)
	if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
		d = min(d, definition(a[:i-1], b[:j-1])+1)
	}
	return d
}

// TestNearestFindsOneTypo: one mistake in a long enough name is always seen
// through, whatever it is.
func TestNearestFindsOneTypo(t *testing.T) {
	known := []string{"timeoutMs", "capabilities", "inputSchema", "transports", "description"}
	rapid.Check(t, func(rt *rapid.T) {
		want := rapid.SampledFrom(known).Draw(rt, "name")
		i := rapid.IntRange(0, len(want)-2).Draw(rt, "at")
		typo := rapid.SampledFrom([]string{
			want[:i] + want[i+1:],                               // left out
			want[:i] + "q" + want[i:],                           // slipped in
			want[:i] + "q" + want[i+1:],                         // replaced
			want[:i] + want[i+1:i+2] + want[i:i+1] + want[i+2:], // swapped
			strings.ToUpper(want), want[:i] + "_" + want[i:], "" + want,
		}).Draw(rt, "typo")
		if got := Nearest(typo, known); got != want {
			rt.Fatalf("Nearest(%q) = %q, want %q", typo, got, want)
		}
	})
}

// A message lists what there is, within a bound, and what was probably meant.
func TestAmong(t *testing.T) {
	long := strings.Split("abcdefghijklmnopqrstuvwxyz", "")
	for _, c := range []struct {
		name  string
		known []string
		want  string
	}{
		{"file", nil, "nothing"},
		{"flie", []string{"echo", "file"}, `echo, file; did you mean "file"?`},
		{"other", []string{"echo", "file"}, "echo, file"},
		{"other", long, "a, b, c, d, e, f, g, h, i, j, k, l and 14 more"},
	} {
		if got := Among(c.name, c.known); got != c.want {
			t.Errorf("Among(%q, %v) = %q, want %q", c.name, c.known, got, c.want)
		}
	}
}
