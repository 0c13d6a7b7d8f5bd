//go:build !linux

package ownprocess

// Conceal returns [ErrUnsupported].
func Conceal() error { return ErrUnsupported }

// Adopt returns [ErrUnsupported].
func Adopt() error { return ErrUnsupported }
