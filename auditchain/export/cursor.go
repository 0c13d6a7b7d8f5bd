package export

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/agentd/agentd/auditchain/internal/durable"
	"golang.org/x/mod/sumdb/tlog"
)

// A Cursor is how far an export has come, kept in a file.
type Cursor struct {
	path  string
	state cursorState
}

type cursorState struct {
	// Origin is the log, Seq the last exported record and Hash its hash.
	Origin string    `json:"origin"`
	Seq    int64     `json:"seq"`
	Hash   tlog.Hash `json:"hash"`
	// Position is how far the sink had come, in its own terms.
	Position int64 `json:"position"`
}

// OpenCursor reads the cursor in a file. A missing file is a cursor at the
// start; it is created when the cursor first moves.
func OpenCursor(path string) (*Cursor, error) {
	c := &Cursor{path: path}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &c.state)
	}
	if err != nil || c.state.Seq < 0 || c.state.Position < 0 {
		return nil, fmt.Errorf("export: the cursor %s cannot be read (remove it to export from the start): %w", path, err)
	}
	return c, nil
}

// Seq is the number of the last exported record, or 0.
func (c *Cursor) Seq() int64 { return c.state.Seq }

// move makes a new state durable.
func (c *Cursor) move(state cursorState) error {
	text, err := json.Marshal(state)
	if err == nil {
		err = durable.Replace(c.path, append(text, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("export: moving the cursor %s: %w", c.path, err)
	}
	c.state = state
	return nil
}
