package sandbox_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	osuser "os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/agentd/agentd/skill/sandbox"
)

// A user is found by name and number. One that does not exist, or that separates nothing, is
// refused with what to do.
func TestFindUser(t *testing.T) {
	for name, want := range map[string]string{
		"daemon": "", "1": "",
		"no-such-user": "there is no user no-such-user on this host (make one", "4123456789": "there is no user 4123456789",
		"": "there is no user", "-1": "there is no user", "root": "root may do everything", "0": "root may do everything",
	} {
		u, err := sandbox.FindUser(name)
		if want == "" && (err != nil || u.UID != 1 || u.Name != "daemon") {
			t.Errorf("%s: %+v, %v", name, u, err)
		}
		if fault := (*sandbox.UserError)(nil); want != "" && (!errors.As(err, &fault) || !strings.Contains(err.Error(), want) || fault.Remedy == "") {
			t.Errorf("%s: %+v, %v", name, u, err)
		}
	}
	own := strconv.Itoa(os.Getuid())
	if _, err := osuser.LookupId(own); err == nil && own != "0" { // a container's user may have no name
		if _, err := sandbox.FindUser(own); err == nil || !strings.Contains(err.Error(), "separates nothing") {
			t.Errorf("the test's own user: %v", err)
		}
	}
}

// mayNotSwitch is what TestMain does as another user.
func mayNotSwitch() error {
	u, err := sandbox.FindUser("daemon")
	if err != nil {
		return err
	}
	return u.MaySwitch(context.Background())
}

// Whether programs can run as a user is found out before the first of them.
func TestMaySwitch(t *testing.T) {
	if os.Getuid() != 0 {
		if err := mayNotSwitch(); err == nil || !strings.Contains(err.Error(), "it has no CAP_SETUID, CAP_SETGID") {
			t.Error(err)
		}
		t.Skip("only root can start a program as another user")
	}
	u, err := sandbox.FindUser("nobody")
	if err != nil {
		t.Fatal(err)
	}
	if err := u.MaySwitch(t.Context(), os.TempDir()); err != nil {
		t.Error(err)
	}
	closed := t.TempDir() // below one that is root's alone
	if err := u.MaySwitch(t.Context(), closed); err == nil || !strings.Contains(err.Error(), "the user nobody cannot enter the folder of temporary files: "+closed) {
		t.Errorf("a closed folder: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = []string{"SANDBOX_MAY_NOT_SWITCH=1", "GORACE=atexit_sleep_ms=0"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "it has no CAP_SETUID, CAP_SETGID, CAP_KILL, CAP_CHOWN, CAP_FOWNER, CAP_DAC_OVERRIDE (run agentd as root") {
		t.Errorf("as another user: %s, %v", out, err)
	}
	// The number means no change to the kernel.
	for _, u := range []sandbox.User{{UID: -1, GID: 65534, Name: "nil"}, {UID: 65534, GID: -1, Name: "nil"}} {
		if err := u.MaySwitch(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot run programs as the user nil: sandbox: user: ") {
			t.Errorf("%+v: %v", u, err)
		}
	}
}

// What the folders for other users' programs permit is to pass through them.
func TestEnterableFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	mode := func() os.FileMode {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	for range 2 {
		if err := sandbox.EnterableFolder(path); err != nil || mode() != 0o711 {
			t.Errorf("%s, %v", mode(), err)
		}
	}
	if err := sandbox.OwnFolder(path); err == nil {
		t.Error("it is taken for one that others cannot enter")
	}
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := sandbox.EnterableFolder(path); err == nil {
		t.Error("others could list it")
	}
}

// What is refused to a program of agentd's user is refused to one that runs as another.
func TestAnotherUserMayNot(t *testing.T) {
	available(t)
	if os.Getuid() != 0 {
		t.Skip("only root can start a program as another user")
	}
	u := users(t)[0]
	dir := u.folder(t)
	w := prepare(t, u, dir)
	p := sandbox.Default(dir)
	p.Hidden = []string{w.Hidden}
	p.User = &sandbox.User{UID: 65534, GID: 65534, Name: "nobody"}
	verdicts := attackWith(t, u, p, w, dir)
	for _, a := range append(attacks(), privileged()...) {
		if got := verdicts[a.name]; !strings.HasPrefix(got, "refused") {
			t.Errorf("%s: %q", a.name, got)
		}
	}
}
