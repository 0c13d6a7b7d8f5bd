package files

import (
	"context"
	"encoding/base64"
	"encoding/json"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/rootfs"
)

const (
	defaultEntries = 200
	defaultMatches = 100
)

const listInput = `{
  "type": "object",
  "properties": {
    "path": {"type": "string", "maxLength": 4096, "description": "a folder, such as reports/2026"},
    "after": {"type": "string", "maxLength": 1000, "description": "goes on after the entry of this name, where a list was truncated"},
    "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 200}
  },
  "additionalProperties": false
}`

const listOutput = `{
  "type": "object",
  "properties": {
    "entries": {"type": "array", "items": {
      "type": "object",
      "properties": {
        "name": {"type": "string"},
        "type": {"type": "string", "enum": ["file", "folder", "link", "other"]},
        "size": {"type": "integer", "minimum": 0},
        "modified": {"type": "string", "format": "date-time"}
      },
      "required": ["name", "type", "size"],
      "additionalProperties": false
    }},
    "truncated": {"type": "boolean"}
  },
  "required": ["entries", "truncated"],
  "additionalProperties": false
}`

const readInput = `{
  "type": "object",
  "properties": {
    "path": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "a file, such as reports/2026/may.csv"},
    "encoding": {"type": "string", "enum": ["utf-8", "utf8", "latin1", "iso-8859-1", "base64"], "default": "utf-8"}
  },
  "required": ["path"],
  "additionalProperties": false
}`

const readOutput = `{
  "type": "object",
  "properties": {
    "content": {"type": "string"},
    "bytes": {"type": "integer", "minimum": 0}
  },
  "required": ["content", "bytes"],
  "additionalProperties": false
}`

const searchInput = `{
  "type": "object",
  "properties": {
    "text": {"type": "string", "minLength": 1, "maxLength": 1000, "description": "as it is written, upper and lower case included; no pattern"},
    "path": {"type": "string", "maxLength": 4096, "description": "a folder"},
    "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}
  },
  "required": ["text"],
  "additionalProperties": false
}`

const searchOutput = `{
  "type": "object",
  "properties": {
    "matches": {"type": "array", "items": {
      "type": "object",
      "properties": {
        "path": {"type": "string"},
        "line": {"type": "integer", "minimum": 1},
        "text": {"type": "string"}
      },
      "required": ["path", "line", "text"],
      "additionalProperties": false
    }},
    "truncated": {"type": "boolean"}
  },
  "required": ["matches", "truncated"],
  "additionalProperties": false
}`

const writeInput = `{
  "type": "object",
  "properties": {
    "path": {"type": "string", "minLength": 1, "maxLength": 4096},
    "content": {"type": "string"},
    "encoding": {"type": "string", "enum": ["utf-8", "base64"], "default": "utf-8", "description": "of the content"},
    "overwrite": {"type": "boolean", "default": false}
  },
  "required": ["path", "content"],
  "additionalProperties": false
}`

const writeOutput = `{
  "type": "object",
  "properties": {"bytes": {"type": "integer", "minimum": 0}},
  "required": ["bytes"],
  "additionalProperties": false
}`

// tools are the handlers. Their arguments have passed the schemas above.
type tools struct{ tree *rootfs.Tree }

func (t tools) list(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	a := struct {
		Path  string `json:"path"`
		After string `json:"after"`
		Limit int    `json:"limit"`
	}{Limit: defaultEntries}
	if err := decode(args, &a); err != nil {
		return nil, err
	}
	entries, more, err := t.tree.List(ctx, a.Path, a.After, a.Limit)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"entries": orEmpty(entries), "truncated": more})
}

func (t tools) read(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	a := struct {
		Path     string `json:"path"`
		Encoding string `json:"encoding"`
	}{Encoding: rootfs.UTF8}
	if err := decode(args, &a); err != nil {
		return nil, err
	}
	content, err := t.tree.Read(ctx, a.Path)
	if err != nil {
		return nil, err
	}
	text, err := rootfs.Decode(content, a.Encoding)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"content": text, "bytes": len(content)})
}

func (t tools) search(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	a := struct {
		Text  string `json:"text"`
		Path  string `json:"path"`
		Limit int    `json:"limit"`
	}{Limit: defaultMatches}
	if err := decode(args, &a); err != nil {
		return nil, err
	}
	matches, more, err := t.tree.Search(ctx, a.Path, a.Text, a.Limit)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"matches": orEmpty(matches), "truncated": more})
}

func (t tools) write(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	var a struct {
		Path      string `json:"path"`
		Content   string `json:"content"`
		Encoding  string `json:"encoding"`
		Overwrite bool   `json:"overwrite"`
	}
	if err := decode(args, &a); err != nil {
		return nil, err
	}
	content := []byte(a.Content)
	if a.Encoding == rootfs.Base64 {
		var err error
		if content, err = base64.StdEncoding.DecodeString(a.Content); err != nil {
			return nil, failure.Errorf(failure.InvalidArgument, "the content is not base64")
		}
	}
	if err := t.tree.Write(ctx, a.Path, content, a.Overwrite); err != nil {
		return nil, err
	}
	return json.Marshal(map[string]int{"bytes": len(content)})
}

func decode(args json.RawMessage, into any) error {
	if len(args) == 0 {
		return nil // a tool whose arguments are all optional
	}
	if err := json.Unmarshal(args, into); err != nil {
		return failure.Errorf(failure.InvalidArgument, "the arguments are not those of the tool").Because(err)
	}
	return nil
}

// orEmpty returns an array that JSON shows as [] rather than null.
func orEmpty[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}
