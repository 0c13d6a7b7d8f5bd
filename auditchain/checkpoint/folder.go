package checkpoint

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/agentd/agentd/auditchain/internal/atomicfile"
)

// A FolderStore is a [Store] with one file for each log in a folder. The files
// are named by hashes of the origins, which may contain any character.
type FolderStore struct{ folder string }

// NewFolderStore returns a store in a folder, which it creates if necessary.
func NewFolderStore(folder string) (*FolderStore, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	return &FolderStore{folder}, nil
}

func (s *FolderStore) name(origin string) string {
	sum := sha256.Sum256([]byte(origin))
	return filepath.Join(s.folder, hex.EncodeToString(sum[:16])+".checkpoint")
}

// Load implements [Store].
func (s *FolderStore) Load(_ context.Context, origin string) ([]byte, error) {
	text, err := atomicfile.Read(s.name(origin), MaxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	return text, nil
}

// Save implements [Store].
func (s *FolderStore) Save(_ context.Context, origin string, signed []byte) error {
	if err := atomicfile.Replace(s.name(origin), signed, 0o600); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}
