package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

// Links are followed as the kernel follows them.
func TestLinks(t *testing.T) {
	dir := Real(t.TempDir())
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, folder := range []string{"a/b", "c/d"} {
		if err := os.MkdirAll(at(folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(at("a/b/file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{
		"absolute": at("a/b"), "relative": "a/b", "chain": "relative", "a/up": "../c/d", "c/d/far": "../../chain/file", "c/tricky": "../chain/../up",
		"loop": "pool", "pool": "loop", "self": "self", "nowhere": "absent/file",
	} {
		if err := os.Symlink(target, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	l := newLinks() // with what it has learnt from the names before
	for _, name := range []string{
		"a/b/file", "absolute/file", "relative/file", "chain/file", "a/up", "a/up/far", "c/tricky", "c/tricky/far", "loop", "loop/file", "pool", "self", "nowhere",
		"absent", "absent/file", "a/b/file/below", "a//b/./file", "c/../a/b", "",
	} {
		want, wantErr := filepath.EvalSymlinks(at(name))
		if got, err := l.follow(at(name)); got != want || (err == nil) != (wantErr == nil) || os.IsNotExist(err) != os.IsNotExist(wantErr) {
			t.Errorf("%s: %q, %v; want %q, %v", name, got, err, want, wantErr)
		}
	}
	if got, err := l.follow("/"); got != "/" || err != nil {
		t.Errorf("/: %q, %v", got, err)
	}
}
