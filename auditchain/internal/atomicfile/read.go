package atomicfile

import (
	"fmt"
	"io"
	"os"
	"syscall"
)

// Read reads a file of at most limit bytes. Whoever can write to its folder could put
// there a pipe, which keeps a reader waiting forever, or a file without an end.
func Read(name string, limit int64) ([]byte, error) {
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // nothing was written through it
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", name, limit)
	}
	if err != nil {
		return nil, err
	}
	return text, nil
}
