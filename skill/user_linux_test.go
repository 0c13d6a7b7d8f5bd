package skill_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentd/agentd/internal/procmark"
	"github.com/agentd/agentd/skill"
	"github.com/agentd/agentd/skill/sandbox"
)

// nobody is a user that every host has.
const nobody = 65534

// asNobody has a process run as another user, in a folder that everybody may read.
func asNobody(t *testing.T, p *skill.Process) *sandbox.Sandbox {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can start a program as another user")
	}
	if missing := sandbox.Available().Missing(); len(missing) > 0 {
		t.Skipf("this kernel cannot hold a program to its policy: %v", missing)
	}
	dir, err := os.MkdirTemp("", "skill-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	p.Dir = filepath.Join(dir, "skill")
	if err := os.Mkdir(p.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	folders, err := sandbox.OpenOthersFolders(filepath.Join(dir, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(folders.Close)
	p.Sandbox = &sandbox.Sandbox{Policy: sandbox.Default(sandbox.Real(p.Dir)), Marks: procmark.NewSource(), Folders: folders}
	if p.Sandbox.Policy.User, err = sandbox.FindUser(fmt.Sprint(nobody)); err != nil {
		t.Fatal(err)
	}
	return p.Sandbox
}

// A program runs as the user that its policy names, with that user's group and variables
// alone and no capability, and cannot read what is agentd's, also where nothing else holds
// it.
func TestAnotherUser(t *testing.T) {
	t.Setenv("USER", "root")
	for _, off := range []bool{false, true} {
		p := &skill.Process{Command: []string{"sh", "-c", `
set -e
printf '{"uid":"%s","gid":"%s","groups":"%s","user":"%s/%s","home":"%s",' "$(id -u)" "$(id -g)" "$(id -G)" "$USER" "$LOGNAME" "$HOME"
printf '"caps":"%s",' "$(grep ^Cap /proc/self/status | cut -f2 | tr '\n' ' ')"
printf '"nnp":"%s",' "$(grep ^NoNewPrivs /proc/self/status | cut -f2)"
printf '"mine":"%s",' "$(cat secret 2>/dev/null || echo refused)"
printf '"everybodys":"%s",' "$(cat open)"
echo said >/dev/stderr
printf '"tmp":"%s"}' "$TMPDIR" >/dev/stdout
`}}
		s := asNobody(t, p)
		s.Policy.Off = off
		for name, mode := range map[string]os.FileMode{"secret": 0o600, "open": 0o644} {
			if err := os.WriteFile(filepath.Join(p.Dir, name), []byte(name), mode); err != nil {
				t.Fatal(err)
			}
		}
		out, err := p.Handle(t.Context(), invocation(`{}`))
		var got map[string]string
		if err := errors.Join(err, json.Unmarshal(out, &got)); err != nil {
			t.Fatalf("off=%v: %s, %v", off, out, err)
		}
		const none = "0000000000000000 "
		want := map[string]string{
			"uid": "65534", "gid": "65534", "groups": "65534", "user": "nobody/nobody", "caps": strings.Repeat(none, 5), "nnp": "1",
			"mine": "refused", "everybodys": "open", "home": got["tmp"], "tmp": got["home"],
		}
		if off {
			want["home"], want["tmp"] = s.Policy.User.Home, ""
		} else if got["tmp"] == "" {
			t.Error("there is no temporary folder")
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("off=%v: got %q, want %q", off, got, want)
		}
	}
}

// The temporary folder of a call is the user's, and goes with the call whatever is in it.
func TestTemporaryFolderOfAnotherUser(t *testing.T) {
	p := &skill.Process{Command: []string{"sh", "-c", `
set -e
mkdir -p "$TMPDIR/a/b" "$TMPDIR/c"
echo x >"$TMPDIR/a/b/f"
chmod 0 "$TMPDIR/a/b/f" "$TMPDIR/a/b" "$TMPDIR/a" "$TMPDIR/c"
test -O "$TMPDIR"
printf '["%s","%s"]' "$TMPDIR" "$(stat -c '%u:%g %a' "$TMPDIR")"
chmod 0 "$TMPDIR"`}}
	asNobody(t, p)
	out, err := p.Handle(t.Context(), invocation(`{}`))
	var got [2]string
	if err := errors.Join(err, json.Unmarshal(out, &got)); err != nil {
		t.Fatal(err)
	}
	if got[1] != "65534:65534 700" {
		t.Errorf("the folder is %s", got[1])
	}
	if _, err := os.Stat(got[0]); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", got[0], err)
	}
	entries, err := os.ReadDir(filepath.Dir(got[0]))
	if err != nil || len(entries) != 0 {
		t.Errorf("%v are left, %v", entries, err)
	}
}

// What agentd builds for a skill is for its user to start.
func TestGoRunOfAnotherUser(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	p := &skill.Process{Command: []string{"go", "run", "main.go"}}
	asNobody(t, p)
	if err := os.WriteFile(filepath.Join(p.Dir, "main.go"), []byte("package main\nimport (\"fmt\"; \"os\")\nfunc main() { fmt.Print(os.Getuid()) }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	builds := filepath.Join(filepath.Dir(p.Dir), "builds")
	if err := sandbox.EnterableFolder(builds); err != nil {
		t.Fatal(err)
	}
	p.Builds = skill.NewBuilds(filepath.Join(builds, "agent"))
	if out, err := p.Handle(t.Context(), invocation(`{}`)); err != nil || string(out) != "65534" {
		t.Errorf("%s, %v", out, err)
	}
}

// A program of another user is stopped with its call.
func TestStoppedAsAnotherUser(t *testing.T) {
	p := &skill.Process{Command: []string{"sh", "-c", `trap "" TERM; touch "$TMPDIR/begun"; sleep 1000; sleep 1000`}, KillGrace: time.Millisecond}
	asNobody(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := p.Handle(ctx, invocation(`{}`))
		ended <- err
	}()
	calls := filepath.Join(filepath.Dir(p.Dir), "calls")
	for begun := false; !begun; {
		found, _ := filepath.Glob(filepath.Join(calls, "*", "begun"))
		begun = len(found) > 0
		select {
		case err := <-ended:
			t.Fatal(err)
		case <-time.After(time.Millisecond):
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// What the operator's modes refuse such a program has a hint that names the key.
func TestHintOfAnotherUser(t *testing.T) {
	p := &skill.Process{Command: []string{"sh", "-c", `cat "$PWD/secret" >/dev/null`}}
	asNobody(t, p)
	if err := os.WriteFile(filepath.Join(p.Dir, "secret"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Handle(t.Context(), invocation(`{}`)); err == nil || !strings.Contains(err.Error(), "runs as the user nobody (sandbox.user") {
		t.Error(err)
	}
}
