package fleet

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/agentd/agentd/internal/strictyaml"
)

// tree is a root with a link out of it, one that stays inside, and one to
// nothing.
func tree(t *testing.T) paths {
	t.Helper()
	outside := t.TempDir()
	root := filepath.Join(outside, "root")
	for _, dir := range []string{"root/a/b", "other"} {
		if err := os.MkdirAll(filepath.Join(outside, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"out": "../other", "a/up": "../..", "in": "a/b", "dangling": "nowhere", "dangling-out": "../nowhere", "loop": "loop",
	} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	p, err := newPaths(root)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// value is a string as a file holds it.
func value(t *testing.T, text string) (*strictyaml.File, strictyaml.Value) {
	t.Helper()
	file, err := strictyaml.Parse("f.json", []byte(`{"path": `+text+`}`))
	if err != nil {
		t.Fatal(err)
	}
	return file, file.Root().Object().Get("path")
}

func TestResolve(t *testing.T) {
	p := tree(t)
	in := func(rel string) string { return filepath.Join(p.root, rel) }
	const leads = "the path leads out of the fleet's root"
	for _, tt := range []struct {
		text            string // JSON
		inside, carried string // "" is a fault
		fault           string
	}{
		{`"a"`, in("a"), in("a"), ""},
		{`"./a/../a/b/"`, in("a/b"), in("a/b"), ""},
		{`"."`, p.root, p.root, ""},
		{`"none/at/all"`, in("none/at/all"), in("none/at/all"), ""},
		{`"in/file"`, in("in/file"), in("in/file"), ""},
		{`"dangling"`, in("dangling"), in("dangling"), ""},
		{`"loop"`, in("loop"), in("loop"), ""}, // opening it fails with the system's error
		{`".."`, "", "", leads},
		{`"../root"`, p.root, p.root, ""},
		{`"../root2"`, "", "", leads},
		{`"a/../../x"`, "", "", leads},
		{`"out"`, "", "", leads},
		{`"out/file"`, "", "", leads},
		{`"out/none/file"`, "", "", leads},
		{`"a/up/other"`, "", "", leads},
		{`"/etc/hosts"`, "", "/etc/hosts", leads},
		{`"/etc/../etc/hosts"`, "", "/etc/hosts", leads},
		{`"a\u0000b"`, "", "", "the path holds a NUL byte"},
	} {
		for _, side := range []struct {
			name    string
			resolve func(strictyaml.Value) string
			want    string
		}{
			{"inside", func(v strictyaml.Value) string { return p.inside(v, p.root) }, tt.inside},
			{"carried", p.carried, tt.carried},
		} {
			file, v := value(t, tt.text)
			got, err := side.resolve(v), file.Err()
			if got != side.want || (err != nil) != (side.want == "") {
				t.Errorf("%s %s: got %q, %v; want %q", side.name, tt.text, got, err, side.want)
			}
			if e, ok := err.(*strictyaml.Error); ok && (len(e.Faults) != 1 || e.Faults[0].Message != tt.fault) {
				t.Errorf("%s %s: got %v, want %s", side.name, tt.text, err, tt.fault)
			}
		}
	}
	// A relative path starts at its base, and still must stay inside the root.
	for text, want := range map[string]string{`"b"`: in("a/b"), `"../in"`: in("in"), `"../../root/a"`: in("a")} {
		file, v := value(t, text)
		if got := p.inside(v, in("a")); got != want || file.Err() != nil {
			t.Errorf("%s from a: got %q, %v; want %q", text, got, file.Err(), want)
		}
	}
	file, v := value(t, `"../../other"`)
	if got := p.inside(v, in("a")); got != "" || file.Err() == nil {
		t.Errorf("out from a: got %q", got)
	}
	// No path is no fault.
	if file, v := value(t, `"a"`); p.inside(file.Root().Object().Get("none"), p.root) != "" || v.Text() != "a" {
		t.Error("an absent path resolves to something")
	}
}

func TestName(t *testing.T) {
	p := paths{root: "/fleet", shown: "../f"}
	for abs, want := range map[string]string{
		"/fleet":         "../f",
		"/fleet/a/b.txt": "../f/a/b.txt",
		"/fleets/a":      "/fleets/a",
		"/etc/hosts":     "/etc/hosts",
	} {
		if got := p.name(abs); got != want {
			t.Errorf("%s: got %s, want %s", abs, got, want)
		}
	}
}

func TestEnvNameEdges(t *testing.T) {
	for name, want := range map[string]bool{
		"A": true, "Z": true, "a": true, "z": true, "_": true, "A0": true, "A9": true, "_9": true, "PATH_2": true,
		"": false, "0": false, "9A": false, "A-B": false, "A/": false, "A:": false, "A@": false, "A[": false, "A`": false, "A{": false, "Ä": false, "A=": false,
	} {
		if got := envName(name); got != want {
			t.Errorf("%q: got %t", name, got)
		}
	}
	for name, want := range map[string]string{"": "", "*": "*", "GO*": "GO", "G*O": "G*O", "G**": "G*"} {
		if got := trimStar(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

func TestURLSafeEdges(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "Z": true, "0": true, "9": true, "a-b": true, "a_b": true, "a-": true,
		"-a": false, "_a": false, "a b": false, "a.b": false, "a/": false, "a:": false, "a@": false, "a[": false, "a`": false, "a{": false, "ä": false,
	} {
		if got := urlSafe(name); got != want {
			t.Errorf("%q: got %t", name, got)
		}
	}
}
