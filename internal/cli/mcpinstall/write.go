package mcpinstall

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// maxFile is far above the size of any configuration.
const maxFile = 4 << 20

// update changes a file as a whole or not at all. It keeps its mode, and a symbolic link
// stays one. One that does not exist is made, for its owner alone if it is not in a
// project: a client may add secrets to it.
func update(path string, change func(old []byte) ([]byte, error)) (changed bool, err error) {
	mode := fs.FileMode(0o644)
	if filepath.IsAbs(path) {
		mode = 0o600
	}
	target := path
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(path); err == nil {
			return false, errors.New("it is a symbolic link that leads nowhere")
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // a folder of a project, which others may share
			return false, err
		}
	case err != nil:
		return false, err
	case !info.Mode().IsRegular():
		return false, errors.New("it is no file")
	case info.Size() > maxFile:
		return false, fmt.Errorf("it has more than %d bytes", maxFile)
	default:
		mode = info.Mode().Perm()
		if target, err = filepath.EvalSymlinks(path); err != nil {
			return false, err
		}
	}
	old, err := os.ReadFile(target)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	text, err := change(old)
	if err != nil || bytes.Equal(text, old) {
		return false, err
	}
	return true, replace(target, old, text, mode)
}

// replace writes the file beside it first, and renames that over it, unless somebody else
// has changed it meanwhile.
func replace(path string, old, text []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".agentd-mcp-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		now, readErr := os.ReadFile(path)
		if errors.Is(readErr, fs.ErrNotExist) {
			readErr = nil
		}
		if err = readErr; err == nil && !bytes.Equal(now, old) {
			err = errors.New("somebody else has changed it meanwhile")
		}
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
