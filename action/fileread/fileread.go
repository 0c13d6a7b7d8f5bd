package fileread

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/internal/rootfs"
)

// Definition is the action: its parameters, what it returns and what it needs.
const Definition = `{
  "id": "file-read",
  "name": "Read File",
  "description": "Read file contents",
  "parameters": {
    "type": "object",
    "properties": {
      "path": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "below a folder of this agent, with / between names"},
      "encoding": {"type": "string", "enum": ["utf-8", "utf8", "latin1", "iso-8859-1", "base64"], "default": "utf-8"}
    },
    "required": ["path"],
    "additionalProperties": false
  },
  "returns": {"type": "string"},
  "permissions": ["file:read"],
  "idempotent": true
}`

// A Config is what the agent's files say about the action: one folder or several.
type Config struct {
	// Dir is the folder in which paths begin.
	Dir string `json:"dir,omitempty"`
	// Folders are several, by the name with which paths begin.
	Folders map[string]string `json:"folders,omitempty"`
	// HardLinks allows files with several names.
	HardLinks bool  `json:"hardLinks,omitempty"`
	MaxBytes  int64 `json:"maxBytes,omitempty"` // of a file; 1 MiB if 0
	// Base is the folder that relative ones are meant from: the agent's.
	Base string `json:"-"`
}

// A Handler runs the action. It is safe for concurrent use.
type Handler struct{ tree *rootfs.Tree }

// New returns a handler. It is an error if a folder is not there.
func New(c Config) (*Handler, error) {
	var folders []rootfs.Folder
	at := func(path string) string {
		if !filepath.IsAbs(path) {
			return filepath.Join(c.Base, path)
		}
		return path
	}
	switch {
	case c.Dir != "" && len(c.Folders) > 0:
		return nil, errors.New("file-read: dir and folders exclude each other")
	case c.Dir != "":
		folders = append(folders, rootfs.Folder{Path: at(c.Dir)})
	}
	for name, path := range c.Folders {
		if name == "" {
			return nil, errors.New("file-read: a folder has no name")
		}
		folders = append(folders, rootfs.Folder{Name: name, Path: at(path)})
	}
	tree, err := rootfs.Open(folders, rootfs.Options{HardLinks: c.HardLinks, MaxBytes: c.MaxBytes})
	if err != nil {
		return nil, fmt.Errorf("file-read: %w", err)
	}
	return &Handler{tree}, nil
}

// Close closes the folders.
func (h *Handler) Close() error {
	h.tree.Close()
	return nil
}

// Execute reads the file and returns its content as a JSON string. Errors are
// [failure.Error].
func (h *Handler) Execute(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	p := struct {
		Path     string `json:"path"`
		Encoding string `json:"encoding"`
	}{Encoding: rootfs.UTF8}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, failure.Errorf(failure.InvalidArgument, "the parameters are not those of file-read").Because(err)
	}
	content, err := h.tree.Read(ctx, p.Path)
	if err != nil {
		return nil, err
	}
	text, err := rootfs.Decode(content, p.Encoding)
	if err != nil {
		return nil, err
	}
	return ijson.AppendQuoted(nil, text), nil
}
