package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// TempMark follows the name of the file in the name of what a crash in
// [Replace] leaves behind.
const TempMark = ".tmp-"

// Replace puts text in the place of the file called name, whole or not at all,
// and makes that durable.
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

// SyncFolder makes changes of a folder's entries durable.
func SyncFolder(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
