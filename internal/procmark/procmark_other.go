//go:build !linux

package procmark

// Set returns [ErrUnsupported].
func Set(Mark) error { return ErrUnsupported }

// SetOf returns [ErrUnsupported].
func SetOf(int, Mark) error { return ErrUnsupported }

// Of returns [ErrUnsupported].
func Of(int) (Mark, error) { return None, ErrUnsupported }
