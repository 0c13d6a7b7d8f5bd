package export

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/agentd/agentd/auditchain/internal/atomicfile"
	"github.com/agentd/agentd/auditchain/internal/filelock"
	"golang.org/x/mod/sumdb/tlog"
)

// A Cursor is the position of an export in a log. It must not be copied, and
// serves one export at a time.
type Cursor struct {
	path  string         // "" for a cursor in memory
	lock  *filelock.Lock // nil for a cursor in memory
	state cursorState
}

type cursorState struct {
	// Origin is the log, Seq the last exported record and Hash its hash.
	Origin string    `json:"origin"`
	Seq    int64     `json:"seq"`
	Hash   tlog.Hash `json:"hash"`
	// Position is that of the sink, see [Rewinder].
	Position int64 `json:"position"`
}

// NewCursor returns a cursor in memory, at the start of a log. It needs no
// [Cursor.Close].
func NewCursor() *Cursor { return &Cursor{} }

// OpenCursor reads the cursor in a file and locks it until it is closed: two
// exports with one cursor would write every record twice. A missing file stands
// for a cursor at the start; it is created when the cursor first moves.
func OpenCursor(path string) (*Cursor, error) {
	lock, err := filelock.Acquire(path + ".lock")
	if held, ok := errors.AsType[*filelock.HeldError](err); ok {
		return nil, fmt.Errorf("export: another export has the cursor %s: %s", path, held.Holder)
	}
	if err != nil {
		return nil, fmt.Errorf("export: locking the cursor %s: %w", path, err)
	}
	c := &Cursor{path: path, lock: lock}
	if err := c.read(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Cursor) read() error {
	text, err := os.ReadFile(c.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, &c.state)
	}
	if err == nil && (c.state.Seq < 0 || c.state.Position < 0) {
		err = errors.New("it has a negative number")
	}
	if err != nil {
		return fmt.Errorf("export: the cursor %s cannot be read (remove it to export from the start): %w", c.path, err)
	}
	return nil
}

// Close releases the lock on the cursor's file. It may be called twice.
func (c *Cursor) Close() {
	if c.lock != nil {
		c.lock.Release()
		c.lock = nil
	}
}

// move makes a new state durable and then the current one.
func (c *Cursor) move(state cursorState) error {
	if c.path == "" {
		c.state = state
		return nil
	}
	text, err := json.Marshal(state)
	if err == nil {
		err = atomicfile.Replace(c.path, append(text, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("export: moving the cursor %s: %w", c.path, err)
	}
	c.state = state
	return nil
}
