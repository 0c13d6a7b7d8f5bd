//go:build !linux

package sandbox

import (
	"context"
	"errors"
)

// MaySwitch returns a [UserError]: programs are not confined here.
func (u *User) MaySwitch(context.Context, ...string) error {
	return &UserError{Cause: "agentd runs programs as another user on Linux alone", Remedy: "leave the key out, and run agentd itself as a user of its own"}
}

type trial struct{}

func (*trial) try() error { return errors.ErrUnsupported }

func giveFolder(string, *User) error { return errors.ErrUnsupported }
