package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// MaySwitch reports whether programs can run as a user, and can enter the folders, those
// that hold their temporary ones: a [UserError] says why they cannot. It starts the helper.
func (u *User) MaySwitch(ctx context.Context, folders ...string) error {
	if missing := missingCapabilities(); len(missing) > 0 {
		return &UserError{
			Cause:  fmt.Sprintf("agentd may not run programs as the user %s: it has no %s", u.Name, strings.Join(missing, ", ")),
			Remedy: "run agentd as root, or with these capabilities (AmbientCapabilities= of systemd), or leave the key out",
		}
	}
	question, err := json.Marshal(trial{User: *u, Folders: folders})
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	answer, err := ask(ctx, string(question))
	if err != nil {
		return err
	}
	if failure := readFailure(strings.NewReader(answer)); answer != probed && failure != nil {
		e := &UserError{Cause: fmt.Sprintf("agentd cannot run programs as the user %s: %s", u.Name, failure), Remedy: "name another user, or leave the key out", Err: failure}
		if failed := (*Error)(nil); errors.As(failure, &failed) && failed.Step == "folder" {
			e.Cause, e.Remedy = fmt.Sprintf("the user %s cannot enter the folder of temporary files: %s", u.Name, failed.Text), "start agentd with a TMPDIR that everybody may enter"
		}
		return e
	}
	return nil
}

// missingCapabilities lists what this process lacks of what it takes to start programs as
// other users, to end them, and to make and remove their folders.
func missingCapabilities() (missing []string) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var now [2]unix.CapUserData
	_ = unix.Capget(&header, &now[0]) // without an answer there are none
	for _, needed := range [...]struct {
		number int
		name   string
	}{
		{unix.CAP_SETUID, "CAP_SETUID"}, {unix.CAP_SETGID, "CAP_SETGID"}, {unix.CAP_KILL, "CAP_KILL"},
		{unix.CAP_CHOWN, "CAP_CHOWN"}, {unix.CAP_FOWNER, "CAP_FOWNER"}, {unix.CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE"},
	} {
		if now[needed.number/32].Effective&(1<<(needed.number%32)) == 0 {
			missing = append(missing, needed.name)
		}
	}
	return missing
}

// A trial is a question to a helper: whether it can become a user, who can enter folders.
type trial struct {
	User    User     `json:"user"`
	Folders []string `json:"folders"`
}

// try answers the question of MaySwitch in this process, the helper.
func (t *trial) try() error {
	runtime.LockOSThread() // for good: the thread is another user's
	if err := switchUser(&Policy{User: &t.User}); err != nil {
		return &Error{Step: "user", Text: err.Error(), Err: err}
	}
	for _, folder := range t.Folders {
		if err := unix.Access(folder, unix.X_OK); err != nil {
			return &Error{Step: "folder", Text: folder + ": " + err.Error(), Err: err}
		}
	}
	return nil
}

// switchUser makes this thread one of the policy's user, for good, with no group but that
// user's primary one. The kernel's calls are made directly, for they change one thread;
// package syscall changes all of them, as the C library does.
func switchUser(p *Policy) error {
	if p.User == nil {
		return nil
	}
	for fd := range reportFD {
		if err := giveFile(fd, p.User); err != nil {
			return fmt.Errorf("descriptor %d: %w", fd, err)
		}
	}
	if err := unix.Setgroups([]int{p.User.GID}); err != nil { // of this thread alone
		return fmt.Errorf("setgroups: %w", err)
	}
	gid, uid := uintptr(p.User.GID), uintptr(p.User.UID)
	if _, _, errno := unix.RawSyscall(sysSetresgid, gid, gid, gid); errno != 0 {
		return fmt.Errorf("setresgid: %w", errno)
	}
	if _, _, errno := unix.RawSyscall(sysSetresuid, uid, uid, uid); errno != 0 {
		return fmt.Errorf("setresuid: %w", errno)
	}
	// To the kernel the highest number means no change.
	r, e, s := unix.Getresuid()
	gr, ge, gs := unix.Getresgid()
	for _, now := range [...]struct{ id, want int }{{r, p.User.UID}, {e, p.User.UID}, {s, p.User.UID}, {gr, p.User.GID}, {ge, p.User.GID}, {gs, p.User.GID}} {
		if uint32(now.id) != uint32(now.want) || uint32(now.want) == math.MaxUint32 { //nolint:gosec // they have 32 bits
			return fmt.Errorf("the user is %d and the group %d after the switch", e, ge)
		}
	}
	return nil
}

// giveFile gives a pipe of the program to its user, who otherwise could not open
// /dev/stdout and /dev/stderr. Of anything else, such as /dev/null, the owner stays.
func giveFile(fd int, u *User) error {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); errors.Is(err, unix.EBADF) {
		return nil
	} else if err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFIFO {
		return nil
	}
	return unix.Fchown(fd, u.UID, u.GID)
}

// giveFolder gives the temporary folder of a call to its user.
func giveFolder(path string, u *User) error { return os.Lchown(path, u.UID, u.GID) }
