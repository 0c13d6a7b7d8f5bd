package sidecar

import (
	"errors"
	"io/fs"

	"github.com/agentd/agentd/auditchain/internal/atomicfile"
	"github.com/agentd/agentd/auditchain/internal/auditerr"
)

// ReadCheckpoint returns the signed checkpoint beside the database, or nil if
// there is none.
func ReadCheckpoint(path string) ([]byte, error) {
	text, err := atomicfile.Read(path+CheckpointSuffix, maxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, auditerr.Wrap(path, "reading the checkpoint file", err)
}

// WriteCheckpoint replaces the signed checkpoint beside the database.
func WriteCheckpoint(path string, note []byte) error {
	return replace(path+CheckpointSuffix, note, 0o644)
}
