//go:build !linux

package proctree

// Read returns [ErrUnsupported].
func Read(int) (Process, error) { return Process{}, ErrUnsupported }

// Descends returns [ErrUnsupported].
func Descends(int, int) (bool, error) { return false, ErrUnsupported }

// Children returns [ErrUnsupported].
func Children(int) ([]int, error) { return nil, ErrUnsupported }

// Adopted returns [ErrUnsupported].
func Adopted(int) ([]int, error) { return nil, ErrUnsupported }

// All returns [ErrUnsupported].
func All() ([]int, error) { return nil, ErrUnsupported }

// Executable returns "".
func Executable(int) string { return "" }
