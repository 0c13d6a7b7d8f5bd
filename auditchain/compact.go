package auditchain

import (
	"context"
	"errors"
	"os"

	"github.com/agentd/agentd/auditchain/internal/auditerr"
	"github.com/agentd/agentd/auditchain/internal/chain"
	"github.com/agentd/agentd/auditchain/internal/store"
)

// A Compacted is the outcome of [Compact]: the size of the database in bytes, before and
// after.
type Compacted struct{ Before, After int64 }

// Compact writes the database of a log anew without its free pages, and makes it one that
// gives them back by itself from now on, which those of older versions do not. It takes no
// record out and changes none. No other process may have the log open, and for a while the
// disk has to hold it twice.
func Compact(ctx context.Context, path string, options Options) (c Compacted, err error) {
	if path, err = store.Resolve(path); err != nil {
		return c, err
	}
	if c.Before, err = fileSize(path); err != nil {
		return c, err
	}
	l, err := Open(ctx, path, options)
	if err != nil {
		return c, err
	}
	err = l.do(ctx, func(w *chain.Writer) error { return w.DB().Vacuum() })
	if err = errors.Join(err, l.Close()); err != nil {
		return c, err
	}
	c.After, err = fileSize(path)
	return c, err
}

// fileSize returns the size of a database that has to be there.
func fileSize(path string) (int64, error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, &Error{Code: CodeNotFound, Path: path, Msg: "there is no such database"}
	}
	if err != nil {
		return 0, auditerr.Wrap(path, "reading its size", err)
	}
	return info.Size(), nil
}
