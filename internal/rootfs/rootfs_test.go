package rootfs_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/rootfs"
)

const secret = "what lies outside"

// tree makes a folder "docs" with some files, and a secret beside it.
func tree(t *testing.T, options rootfs.Options) (tree *rootfs.Tree, dir string) {
	t.Helper()
	base := t.TempDir()
	dir = filepath.Join(base, "docs")
	for name, content := range map[string]string{
		"secret": secret, "docs/a.txt": "alpha", "docs/sub/b.txt": "beta\nalphabet\r\n", "docs/sub/c.bin": "\xff\x00alpha", "docs-private/d.txt": secret,
	} {
		path := filepath.Join(base, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return open(t, []rootfs.Folder{{Name: "docs", Path: dir, Write: true}}, options), dir
}

func open(t *testing.T, folders []rootfs.Folder, options rootfs.Options) *rootfs.Tree {
	t.Helper()
	tree, err := rootfs.Open(folders, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tree.Close)
	return tree
}

func code(err error) failure.Code {
	if e := failure.As(err); e != nil {
		return e.Code
	}
	return ""
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestRead(t *testing.T) {
	tree, dir := tree(t, rootfs.Options{})
	must(t, os.Symlink("sub/b.txt", filepath.Join(dir, "inside")))
	for path, want := range map[string]string{"docs/a.txt": "alpha", "docs/sub/b.txt": "beta\nalphabet\r\n", "docs/inside": "beta\nalphabet\r\n"} {
		if got, err := tree.Read(t.Context(), path); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
}

// Every row is refused with its code, at once, and shows nothing of what lies outside.
func TestAdversary(t *testing.T) {
	tree, dir := tree(t, rootfs.Options{MaxBytes: 1000})
	in := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.Symlink("../secret", in("up")))
	must(t, os.Symlink(filepath.Join(filepath.Dir(dir), "secret"), in("absolute")))
	must(t, os.Symlink("..", in("parent")))
	must(t, os.Symlink("sub/../../secret", in("winding")))
	must(t, os.Symlink("/proc/self/environ", in("environ")))
	must(t, os.Symlink("loop", in("loop")))
	must(t, os.Symlink("nowhere", in("dangling")))
	must(t, os.Symlink(in("a.txt"), in("absolute-inside")))
	must(t, os.Link(filepath.Join(filepath.Dir(dir), "secret"), in("hard")))
	must(t, unix.Mkfifo(in("pipe"), 0o600))
	must(t, os.WriteFile(in("big"), make([]byte, 1001), 0o600))
	must(t, os.WriteFile(in("sparse"), nil, 0o600))
	must(t, os.Truncate(in("sparse"), 10<<30))
	must(t, os.WriteFile(in("closed"), nil, 0))
	socket, err := net.Listen("unix", in("s"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	rows := []struct {
		path string
		want failure.Code
	}{
		{"docs/../secret", failure.InvalidArgument},
		{"docs/sub/../../secret", failure.InvalidArgument},
		{"docs/sub/../a.txt", failure.InvalidArgument},
		{"../docs/a.txt", failure.InvalidArgument},
		{"..", failure.InvalidArgument},
		{"docs/..", failure.InvalidArgument},
		{"docs/./a.txt", failure.InvalidArgument},
		{"docs//a.txt", failure.InvalidArgument},
		{"docs/a.txt/", failure.InvalidArgument},
		{"/etc/passwd", failure.InvalidArgument},
		{dir + "/a.txt", failure.InvalidArgument},
		{"/proc/self/environ", failure.InvalidArgument},
		{"file:///etc/passwd", failure.InvalidArgument},
		{"docs\\..\\secret", failure.InvalidArgument},
		{"docs/a.txt\x00.png", failure.InvalidArgument},
		{"docs/a\n.txt", failure.InvalidArgument},
		{"docs/\xff", failure.InvalidArgument},
		{"", failure.InvalidArgument},
		{"docs/" + strings.Repeat("x/", 3000), failure.InvalidArgument},
		{"docs/" + strings.Repeat("x", 300), failure.InvalidArgument},
		{"docs/%2e%2e/secret", failure.NotFound},
		{"docs/..%2fsecret", failure.NotFound},
		{"docs/．．/secret", failure.NotFound},
		{"~/secret", failure.NotFound},
		{"docs-private/d.txt", failure.NotFound},
		{"DOCS/a.txt", failure.NotFound},
		{"docs/none", failure.NotFound},
		{"docs/a.txt/x", failure.NotFound},
		{"docs/dangling", failure.NotFound},
		{"docs", failure.InvalidArgument},
		{"docs/sub", failure.InvalidArgument},
		{"docs/up", failure.NotAllowed},
		{"docs/absolute", failure.NotAllowed},
		{"docs/parent/secret", failure.NotAllowed},
		{"docs/parent/docs/a.txt", failure.NotAllowed},
		{"docs/winding", failure.NotAllowed},
		{"docs/environ", failure.NotAllowed},
		{"docs/loop", failure.NotAllowed},
		{"docs/absolute-inside", failure.NotAllowed},
		{"docs/hard", failure.NotAllowed},
		{"docs/pipe", failure.NotAllowed},
		{"docs/s", failure.NotAllowed},
		{"docs/big", failure.TooLarge},
		{"docs/sparse", failure.TooLarge},
	}
	if os.Geteuid() != 0 {
		rows = append(rows, struct {
			path string
			want failure.Code
		}{"docs/closed", failure.NotAllowed})
	}
	for _, row := range rows {
		content, err := tree.Read(t.Context(), row.path)
		if code(err) != row.want {
			t.Errorf("%.40q: %q, %v; want %s", row.path, content, err, row.want)
			continue
		}
		if cause := errors.Unwrap(err); cause != nil && row.path != "" && strings.Contains(cause.Error(), row.path) {
			t.Errorf("%.40q: the log would have the path: %v", row.path, cause)
		}
		for _, hidden := range []string{filepath.Dir(dir), "openat", "statat", secret} {
			if strings.Contains(err.Error(), hidden) && !strings.Contains(row.path, hidden) {
				t.Errorf("%.40q: the error shows %q: %v", row.path, hidden, err)
			}
		}
	}
}

// The kernel's own files are no files, even in a folder that the operator names.
func TestKernelFiles(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the kernel shows itself as files on Linux")
	}
	tree := open(t, []rootfs.Folder{{Name: "self", Path: "/proc/self"}, {Name: "dev", Path: "/dev"}, {Name: "kernel", Path: "/sys/kernel"}}, rootfs.Options{})
	for _, path := range []string{"self/environ", "self/mem", "self/status", "self/fd/0", "self/root/etc/passwd", "self/cwd/go.mod", "dev/zero", "dev/tty", "dev/null", "kernel/notes"} {
		if content, err := tree.Read(t.Context(), path); code(err) != failure.NotAllowed && code(err) != failure.NotFound {
			t.Errorf("%s: %d bytes, %v", path, len(content), err)
		}
	}
}

// While somebody swaps a file for a link that leads outside, for a pipe and for a hard
// link, readers get the file or an error: never the secret, and never a wait.
func TestSwappedDuringRead(t *testing.T) {
	tree, dir := tree(t, rootfs.Options{})
	outside := filepath.Join(filepath.Dir(dir), "secret")
	must(t, os.Mkdir(filepath.Join(dir, "d"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "d", "secret"), []byte("harmless"), 0o600))
	stop := make(chan struct{})
	var swappers sync.WaitGroup
	defer swappers.Wait()
	defer close(stop)
	swap := func(name string, make ...func(path string) error) {
		swappers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				next := filepath.Join(dir, name+".next")
				if err := make[i%len(make)](next); err != nil {
					t.Error(err)
					return
				}
				if err := os.Rename(next, filepath.Join(dir, name)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	regular := func(path string) error { return os.WriteFile(path, []byte("harmless"), 0o600) }
	// Each comes right after the file: what was judged as the one is opened as the other.
	swap("file", regular, func(path string) error { return os.Link(outside, path) },
		regular, func(path string) error { return unix.Mkfifo(path, 0o600) },
		regular, func(path string) error { return os.Symlink(outside, path) },
		regular, func(path string) error { return os.Symlink("../secret", path) },
	)
	// A folder on the way becomes a link to the folder that has the secret.
	swappers.Go(func() {
		here, away := filepath.Join(dir, "d"), filepath.Join(dir, "d.away")
		for {
			select {
			case <-stop:
				return
			default:
			}
			err := errors.Join(os.Rename(here, away), os.Symlink("..", here), os.Remove(here), os.Rename(away, here))
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	read := map[string]int{}
	for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); {
		for _, path := range []string{"docs/file", "docs/d/secret"} {
			content, err := tree.Read(t.Context(), path)
			switch {
			case err == nil && string(content) == secret:
				t.Fatalf("%s gave what lies outside", path)
			case err == nil && string(content) != "harmless":
				t.Fatalf("%s gave %q, which is in no file", path, content)
			case err == nil:
				read[path]++
			case code(err) == "":
				t.Fatalf("%s: an error of another kind: %v", path, err)
			}
		}
	}
	if read["docs/file"] == 0 && read["docs/d/secret"] == 0 {
		t.Error("no read succeeded: the race was not run")
	}
}

func TestHardLinksIfTold(t *testing.T) {
	tree, dir := tree(t, rootfs.Options{HardLinks: true})
	must(t, os.Link(filepath.Join(dir, "a.txt"), filepath.Join(dir, "again")))
	if got, err := tree.Read(t.Context(), "docs/again"); err != nil || string(got) != "alpha" {
		t.Errorf("%q, %v", got, err)
	}
}

// A file that grows while it is read ends at the limit.
func TestLimit(t *testing.T) {
	tree, dir := tree(t, rootfs.Options{MaxBytes: 5})
	if got, err := tree.Read(t.Context(), "docs/a.txt"); err != nil || len(got) != 5 {
		t.Errorf("%q, %v", got, err)
	}
	must(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("alpha+"), 0o600))
	if _, err := tree.Read(t.Context(), "docs/a.txt"); code(err) != failure.TooLarge {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tree.Read(ctx, "docs/a.txt"); code(err) != failure.TooLarge && code(err) != failure.Cancelled {
		t.Error(err)
	}
}

// A folder that is removed or moved, and made again, is read again; a link in its place
// is not.
func TestFolderComesBack(t *testing.T) {
	tree, dir := tree(t, rootfs.Options{})
	must(t, os.RemoveAll(dir))
	if _, err := tree.Read(t.Context(), "docs/a.txt"); code(err) != failure.Unavailable {
		t.Errorf("removed: %v", err)
	}
	must(t, os.Symlink(filepath.Join(filepath.Dir(dir), "docs-private"), dir))
	if content, err := tree.Read(t.Context(), "docs/d.txt"); code(err) != failure.Unavailable {
		t.Errorf("a link in its place: %q, %v", content, err)
	}
	must(t, os.Remove(dir))
	must(t, os.Mkdir(dir, 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("new"), 0o600))
	if got, err := tree.Read(t.Context(), "docs/a.txt"); err != nil || string(got) != "new" {
		t.Errorf("made again: %q, %v", got, err)
	}
	must(t, os.Rename(dir, dir+".old"))
	must(t, os.Symlink("docs-private", dir))
	if content, err := tree.Read(t.Context(), "docs/d.txt"); code(err) != failure.NotFound {
		t.Errorf("moved, and a link in its place: %q, %v", content, err)
	}
	must(t, os.Remove(dir))
	must(t, os.Mkdir(dir, 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("newer"), 0o600))
	if got, err := tree.Read(t.Context(), "docs/a.txt"); err != nil || string(got) != "newer" {
		t.Errorf("moved, and another in its place: %q, %v", got, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	for want, folders := range map[string][]rootfs.Folder{
		"no folder":      {},
		"root of the":    {{Name: "a", Path: "/"}},
		"no such file":   {{Name: "a", Path: filepath.Join(dir, "none")}},
		"has no name":    {{Path: dir}, {Name: "a", Path: dir}},
		"two folders":    {{Name: "a", Path: dir}, {Name: "a", Path: dir}},
		"no name for":    {{Name: "a/b", Path: dir}},
		"neither . nor ": {{Name: "..", Path: dir}},
	} {
		if _, err := rootfs.Open(folders, rootfs.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// One folder without a name is where paths begin.
func TestNamelessFolder(t *testing.T) {
	_, dir := tree(t, rootfs.Options{})
	tree := open(t, []rootfs.Folder{{Path: dir}}, rootfs.Options{})
	if got, err := tree.Read(t.Context(), "sub/b.txt"); err != nil || !strings.HasPrefix(string(got), "beta") {
		t.Errorf("%q, %v", got, err)
	}
	if entries, _, err := tree.List(t.Context(), "", "", 10); err != nil || len(entries) != 2 {
		t.Errorf("%v, %v", entries, err)
	}
	if _, err := tree.Read(t.Context(), "../secret"); code(err) != failure.InvalidArgument {
		t.Error(err)
	}
}

func TestList(t *testing.T) {
	tree, dir := tree(t, rootfs.Options{})
	must(t, os.Symlink("a.txt", filepath.Join(dir, "link")))
	must(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	must(t, os.Symlink("..", filepath.Join(dir, "up")))
	show := func(dir, after string, limit int) string {
		entries, more, err := tree.List(t.Context(), dir, after, limit)
		if err != nil {
			return string(code(err))
		}
		var b strings.Builder
		for _, e := range entries {
			fmt.Fprintf(&b, "%s:%s:%d ", e.Name, e.Type, e.Size)
		}
		return b.String() + fmt.Sprint(more)
	}
	for _, row := range [][2]string{
		{show("", "", 10), "docs:folder:0 false"},
		{show("docs", "", 10), "a.txt:file:5 link:link:0 pipe:other:0 sub:folder:0 up:link:0 false"},
		{show("docs", "", 2), "a.txt:file:5 link:link:0 true"},
		{show("docs", "pipe", 1), "sub:folder:0 true"},
		{show("docs/sub", "", 10), "b.txt:file:15 c.bin:file:7 false"},
		{show("docs/a.txt", "", 10), "not_found"},
		{show("docs/up", "", 10), "permission_denied"},
		{show("docs/pipe", "", 10), "not_found"},
		{show("docs/..", "", 10), "invalid_arguments"},
		{show("other", "", 10), "not_found"},
	} {
		if row[0] != row[1] {
			t.Errorf("got %s, want %s", row[0], row[1])
		}
	}
}

func TestSearch(t *testing.T) {
	tree, dir := tree(t, rootfs.Options{MaxBytes: 100})
	must(t, os.Symlink("../docs-private", filepath.Join(dir, "away")))
	must(t, os.Symlink(".", filepath.Join(dir, "circle")))
	must(t, os.WriteFile(filepath.Join(dir, "big"), []byte(strings.Repeat("alpha ", 100)), 0o600))
	// One that is larger than a search may read in all does not hide those behind it.
	must(t, os.WriteFile(filepath.Join(dir, "0.log"), nil, 0o600))
	must(t, os.Truncate(filepath.Join(dir, "0.log"), 1<<30))
	must(t, os.Link(filepath.Join(filepath.Dir(dir), "secret"), filepath.Join(dir, "hard")))
	must(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	matches, more, err := tree.Search(t.Context(), "", "alpha", 10)
	want := []rootfs.Match{{Path: "docs/a.txt", Line: 1, Text: "alpha"}, {Path: "docs/sub/b.txt", Line: 2, Text: "alphabet"}}
	if err != nil || more || fmt.Sprint(matches) != fmt.Sprint(want) {
		t.Errorf("%v, %v, %v", matches, more, err)
	}
	if matches, more, err = tree.Search(t.Context(), "docs", "alpha", 1); err != nil || !more || len(matches) != 1 {
		t.Errorf("%v, %v, %v", matches, more, err)
	}
	if matches, _, err = tree.Search(t.Context(), "docs", "outside", 10); err != nil || len(matches) != 0 {
		t.Errorf("%v, %v", matches, err)
	}
	for dir, want := range map[string]failure.Code{"docs/none": failure.NotFound, "docs/away": failure.NotAllowed, "..": failure.InvalidArgument} {
		if _, _, err := tree.Search(t.Context(), dir, "alpha", 10); code(err) != want {
			t.Errorf("%s: %v", dir, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := tree.Search(ctx, "", "alpha", 10); code(err) != failure.Cancelled {
		t.Errorf("cancelled: %v", err)
	}
	for _, text := range []string{"", "a\nb", "\xff"} {
		if _, _, err := tree.Search(t.Context(), "", text, 10); code(err) != failure.InvalidArgument {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A search ends at its bounds, and says that there may be more.
func TestSearchBounds(t *testing.T) {
	tree, dir := tree(t, rootfs.Options{})
	deep := filepath.Join(dir, strings.Repeat("d/", 40))
	must(t, os.MkdirAll(deep, 0o700))
	must(t, os.WriteFile(filepath.Join(deep, "x"), []byte("needle"), 0o600))
	if matches, more, err := tree.Search(t.Context(), "docs/d", "needle", 10); err != nil || !more || len(matches) != 0 {
		t.Errorf("40 folders deep: %v, %v, %v", matches, more, err)
	}
	if matches, more, err := tree.Search(t.Context(), "docs/"+strings.Repeat("d/", 19)+"d", "needle", 10); err != nil || more || len(matches) != 1 {
		t.Errorf("20 folders deep: %v, %v, %v", matches, more, err)
	}
	many := filepath.Join(dir, "many")
	must(t, os.Mkdir(many, 0o700))
	for i := range 10_001 {
		must(t, os.Symlink("x", filepath.Join(many, fmt.Sprint(i))))
	}
	if _, _, err := tree.List(t.Context(), "docs/many", "", 10); code(err) != failure.TooLarge {
		t.Errorf("a folder of 10,001 entries: %v", err)
	}
}

func TestWrite(t *testing.T) {
	tree, dir := tree(t, rootfs.Options{MaxBytes: 100})
	outside := filepath.Join(filepath.Dir(dir), "secret")
	must(t, os.Symlink("../secret", filepath.Join(dir, "up")))
	must(t, os.Symlink("..", filepath.Join(dir, "parent")))
	must(t, os.Symlink("../new", filepath.Join(dir, "dangling")))
	for _, row := range []struct {
		path      string
		overwrite bool
		want      failure.Code
	}{
		{"docs/new/deep/file", false, ""},
		{"docs/new/deep/file", false, failure.NotAllowed},
		{"docs/new/deep/file", true, ""},
		{"docs/a.txt", false, failure.NotAllowed},
		{"docs/up", false, failure.NotAllowed},
		{"docs/up", true, ""}, // the link is replaced
		{"docs/dangling", false, failure.NotAllowed},
		{"docs/parent/x", true, failure.NotAllowed},
		{"docs/sub", true, failure.InvalidArgument},
		{"docs", true, failure.InvalidArgument},
		{"docs/../x", true, failure.InvalidArgument},
	} {
		if err := tree.Write(t.Context(), row.path, []byte("written"), row.overwrite); code(err) != row.want || (err == nil) != (row.want == "") {
			t.Errorf("%s, overwrite %v: %v (%v)", row.path, row.overwrite, err, errors.Unwrap(err))
		} else if err == nil {
			if got, err := tree.Read(t.Context(), row.path); err != nil || string(got) != "written" {
				t.Errorf("%s: then %q, %v", row.path, got, err)
			}
		}
	}
	if err := tree.Write(t.Context(), "docs/long", make([]byte, 101), false); code(err) != failure.TooLarge {
		t.Error(err)
	}
	if got, err := os.ReadFile(outside); err != nil || string(got) != secret {
		t.Errorf("outside there is %q, %v", got, err)
	}
	readOnly := open(t, []rootfs.Folder{{Name: "docs", Path: dir}}, rootfs.Options{})
	if err := readOnly.Write(t.Context(), "docs/x", nil, true); code(err) != failure.NotAllowed {
		t.Errorf("not told to write: %v", err)
	}
	err := filepath.WalkDir(filepath.Dir(dir), func(path string, _ fs.DirEntry, err error) error {
		if strings.Contains(path, ".agentd-") {
			t.Errorf("%s is left", path)
		}
		return err
	})
	must(t, err)
}

// What the agent may not write is an error that says so, and the old content stays.
func TestWriteNotPermitted(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root writes to folders that it may not write to")
	}
	tree, dir := tree(t, rootfs.Options{})
	must(t, os.Chmod(dir, 0o500))
	defer os.Chmod(dir, 0o700)
	if err := tree.Write(t.Context(), "docs/a.txt", []byte("x"), true); code(err) != failure.NotAllowed {
		t.Error(err)
	}
}

func FuzzPath(f *testing.F) {
	for _, seed := range []string{"docs/a.txt", "docs/../secret", "/etc/passwd", "docs//", "docs/sub/./c.bin", "docs/\x00", "docs/..\\secret", "docs/sub"} {
		f.Add(seed)
	}
	base := f.TempDir()
	dir := filepath.Join(base, "docs")
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "sub"), 0o700), os.WriteFile(filepath.Join(base, "secret"), []byte(secret), 0o600),
		os.WriteFile(filepath.Join(dir, "a.txt"), []byte("alpha"), 0o600)); err != nil {
		f.Fatal(err)
	}
	tree, err := rootfs.Open([]rootfs.Folder{{Name: "docs", Path: dir}}, rootfs.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(tree.Close)
	f.Fuzz(func(t *testing.T, path string) {
		content, err := tree.Read(t.Context(), path)
		if err == nil && string(content) != "alpha" || err != nil && failure.As(err) == nil {
			t.Fatalf("%q: %q, %v", path, content, err)
		}
	})
}

func TestDecode(t *testing.T) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, row := range []struct {
		content, encoding, want string
		code                    failure.Code
	}{
		{"grüße\x00", "utf-8", "grüße\x00", ""},
		{"a", "", "a", ""},
		{"a", "utf8", "a", ""},
		{"a\xff", "utf-8", "", failure.Unsupported},
		{"\xed\xa0\x80", "utf-8", "", failure.Unsupported}, // a surrogate
		{"\xc0\xaf", "utf-8", "", failure.Unsupported},     // "/" in two bytes
		{"gr\xfc\xdfe", "latin1", "grüße", ""},
		{"\x80", "iso-8859-1", "\u0080", ""},
		{"\x00\xff", "base64", "AP8=", ""},
		{"a", "utf-16", "", failure.InvalidArgument},
		{"a", "UTF-8", "", failure.InvalidArgument},
	} {
		got, err := rootfs.Decode([]byte(row.content), row.encoding)
		if got != row.want || code(err) != row.code {
			t.Errorf("%q as %s: %q, %v", row.content, row.encoding, got, err)
		}
	}
	for _, encoding := range rootfs.Encodings() {
		if _, err := rootfs.Decode([]byte("a"), encoding); err != nil {
			t.Errorf("%s: %v", encoding, err)
		}
	}
	latin1, _ := rootfs.Decode(all, rootfs.Latin1)
	for i, r := range []rune(latin1) {
		if int(r) != i {
			t.Fatalf("byte %d became %d", i, r)
		}
	}
}
