//go:build !linux

package sandbox

import "errors"

// supported is true where programs can be confined at all.
const supported = false

// Available returns what the kernel has: nothing here.
func Available() Layers { return Layers{} }

func confine(*Policy, string, []string) error {
	return errors.New("this system cannot confine programs")
}
