package rootfs

import (
	"context"
	"crypto/rand"
	"os"
	"path"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/truncate"
)

// Write makes a file of content, or replaces it where overwrite is set. Readers see the
// old content or the new one, never a part: it is written beside and renamed. A name
// that is a link is replaced; what it leads to stays. Folders on the way are made.
func (t *Tree) Write(ctx context.Context, name string, content []byte, overwrite bool) (err error) {
	f, root, rest, err := t.locate(name)
	if err != nil {
		return err
	}
	shown := truncate.Quote(name)
	switch {
	case !f.Write:
		return failure.Errorf(failure.NotAllowed, "files may not be written to that folder")
	case rest == ".":
		return failure.Errorf(failure.InvalidArgument, "%s is a folder", shown)
	case int64(len(content)) > t.options.MaxBytes:
		return failure.Errorf(failure.TooLarge, "the content has more than %d bytes", t.options.MaxBytes)
	}
	if ended := failure.Ended(ctx, "writing the file"); ended != nil {
		return ended
	}
	if info, err := root.Lstat(rest); err == nil && info.IsDir() {
		return failure.Errorf(failure.InvalidArgument, "%s is a folder", shown)
	}
	if err := root.MkdirAll(path.Dir(rest), 0o700); err != nil {
		return translate(name, err)
	}
	temporary := path.Join(path.Dir(rest), ".agentd-"+rand.Text())
	defer func() {
		if err != nil {
			_ = root.Remove(temporary)
			err = translate(name, err)
		}
	}()
	if err := writeSynced(root, temporary, content); err != nil {
		return err
	}
	if overwrite {
		return root.Rename(temporary, rest)
	}
	// A link fails where the name is taken, which a rename does not.
	if err := root.Link(temporary, rest); err != nil {
		return err
	}
	return root.Remove(temporary)
}

func writeSynced(root *os.Root, name string, content []byte) error {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	return err
}
