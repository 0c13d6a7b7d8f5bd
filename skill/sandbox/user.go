package sandbox

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/user"
	"strconv"
)

// A User is whom a program runs as, in place of the user of this process.
type User struct {
	UID int `json:"uid"`
	// GID is the user's primary group, the only one that the program has.
	GID  int    `json:"gid"`
	Name string `json:"name"`
	// Home is that of the user database. A program that has a temporary folder has that.
	Home string `json:"home,omitempty"`
}

// A UserError reports that programs cannot run as a user.
type UserError struct {
	Cause  string
	Remedy string
	// Err is the system's error; it may be nil.
	Err error
}

func (e *UserError) Error() string { return e.Cause + " (" + e.Remedy + ")" }

// Unwrap returns Err.
func (e *UserError) Unwrap() error { return e.Err }

// FindUser finds a user by name or number in the user database. The error is a [UserError]:
// there is no such user, or it is one that separates nothing.
func FindUser(name string) (*User, error) {
	found, err := user.Lookup(name)
	if _, perr := strconv.ParseUint(name, 10, 32); perr == nil && err != nil {
		found, err = user.LookupId(name)
	}
	if err != nil {
		return nil, &UserError{
			Cause:  fmt.Sprintf("there is no user %s on this host", name),
			Remedy: "make one, as with `useradd --system`, or name another", Err: err,
		}
	}
	u := &User{Name: found.Username, Home: found.HomeDir}
	uid, uidErr := strconv.ParseUint(found.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(found.Gid, 10, 32)
	const none = math.MaxUint32 // to the kernel
	if err := errors.Join(uidErr, gidErr); err != nil || uid == none || gid == none {
		return nil, &UserError{Cause: fmt.Sprintf("the user %s or its group has no number", name), Remedy: "name another user", Err: err}
	}
	u.UID, u.GID = int(uid), int(gid)
	switch u.UID {
	case 0:
		return nil, &UserError{Cause: "root may do everything", Remedy: "name a user that exists for such skills alone"}
	case os.Geteuid(), os.Getuid():
		return nil, &UserError{
			Cause:  fmt.Sprintf("%s is the user of agentd, which separates nothing", u.Name),
			Remedy: "name a user that exists for such skills alone, or leave the key out",
		}
	}
	return u, nil
}
