package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// TempMark follows the file's name in the name of the temporary file that a
// crash in [Replace] can leave behind.
const TempMark = ".tmp-"

// Replace writes text to the file called name, completely or not at all, and
// makes the change durable. The text goes to a temporary file in the same
// folder, since a rename is atomic only within one file system; it is synced
// before the rename, and the folder after it, because file systems may reorder
// the two writes.
func Replace(name string, text []byte, mode fs.FileMode) error {
	file, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+TempMark+"*")
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	err = errors.Join(err, file.Chmod(mode), file.Sync())
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return SyncFolder(filepath.Dir(name))
}

// SyncFolder makes changes to a folder's entries durable.
func SyncFolder(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
