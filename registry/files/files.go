package files

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/agentd/agentd/internal/rootfs"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/internal/toolerror"
)

// maxBytes bounds a file where the configuration does not: a result of a tool has at most
// 1 MiB by default, with what JSON or base64 adds.
const maxBytes = 512 << 10

// A Resolver makes the capability files.
type Resolver struct{}

// A Config is what the agent's file says about the capability.
type Config struct {
	// Dirs are folders, each by its last name in the paths of the tools.
	Dirs []string `json:"dirs,omitempty"`
	// Folders are folders by names of their own.
	Folders map[string]string `json:"folders,omitempty"`
	// Write gives the tool write_file too.
	Write     bool  `json:"write,omitempty"`
	HardLinks bool  `json:"hardLinks,omitempty"` // also files with several names
	MaxBytes  int64 `json:"maxBytes,omitempty"`  // of a file
}

// Key implements [registry.Resolver].
func (Resolver) Key() string { return "files" }

// Tools implements [registry.Resolver].
func (Resolver) Tools() []registry.Tool {
	return []registry.Tool{
		{Key: "list_files", Name: "List Files", Description: "Lists a folder. Without a path, lists the folders that this agent has."},
		{Key: "read_file", Name: "Read File", Description: "Reads a file. Paths begin with the name of one of this agent's folders."},
		{Key: "search_files", Name: "Search Files", Description: "Finds the lines that contain a text, in the files of a folder and below. Without a path, searches all of this agent's folders."},
		{Key: "write_file", Name: "Write File", Description: "Makes a file, with the folders on the way, or replaces one if told to overwrite."},
	}
}

// ConfigSchema implements [registry.Resolver].
func (Resolver) ConfigSchema() json.RawMessage {
	return json.RawMessage(`{
  "type": "object",
  "properties": {
    "dirs": {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "uniqueItems": true},
    "folders": {"type": "object", "additionalProperties": {"type": "string", "minLength": 1}},
    "write": {"type": "boolean"},
    "hardLinks": {"type": "boolean"},
    "maxBytes": {"type": "integer", "minimum": 1, "maximum": 67108864}
  },
  "additionalProperties": false
}`)
}

// Resolve implements [registry.Resolver].
func (r Resolver) Resolve(ctx registry.Context, c registry.Config) (*registry.Server, error) {
	var config Config
	if err := json.Unmarshal(c.JSON, &config); err != nil {
		return nil, err
	}
	tree, err := open(ctx.WorkspaceDir, config)
	if err != nil {
		return nil, err
	}
	s := registry.NewServer(r.Key(), "1", c.Tools)
	s.OnClose(func() error { tree.Close(); return nil })
	tools := tools{tree}
	for _, t := range r.Tools() {
		spec := registry.ToolSpec{Key: t.Key, Title: t.Name, Description: t.Description, ReadOnly: true, Idempotent: true}
		var h registry.Handler
		switch t.Key {
		case "list_files":
			h, spec.Input, spec.Output = tools.list, json.RawMessage(listInput), json.RawMessage(listOutput)
		case "read_file":
			h, spec.Input, spec.Output = tools.read, json.RawMessage(readInput), json.RawMessage(readOutput)
		case "search_files":
			h, spec.Input, spec.Output = tools.search, json.RawMessage(searchInput), json.RawMessage(searchOutput)
		case "write_file":
			if !config.Write {
				continue
			}
			h, spec.Input, spec.Output = tools.write, json.RawMessage(writeInput), json.RawMessage(writeOutput)
			spec.ReadOnly, spec.Idempotent, spec.Destructive = false, false, true
		}
		if err := s.Add(spec, toolerror.Handler(ctx.Logger, t.Key, h)); err != nil {
			tree.Close()
			return nil, err
		}
	}
	return s, nil
}

// open opens the folders of a configuration; relative ones are meant from base.
func open(base string, c Config) (*rootfs.Tree, error) {
	var folders []rootfs.Folder
	add := func(name, path string) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(base, path)
		}
		folders = append(folders, rootfs.Folder{Name: name, Path: path, Write: c.Write})
	}
	pointers := map[string]string{}
	for i, dir := range c.Dirs {
		name := filepath.Base(filepath.Join(base, dir))
		if _, taken := pointers[name]; taken {
			return nil, &registry.ConfigError{Pointer: fmt.Sprintf("/dirs/%d", i), Message: fmt.Sprintf("two folders are called %q", name), Hint: "give them names with folders: {name: path}"}
		}
		pointers[name] = fmt.Sprintf("/dirs/%d", i)
		add(name, dir)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Folders)) {
		if name == "" {
			return nil, &registry.ConfigError{Pointer: "/folders", Message: "a folder has no name"}
		}
		if _, taken := pointers[name]; taken {
			return nil, &registry.ConfigError{Pointer: "/folders", Message: fmt.Sprintf("two folders are called %q", name)}
		}
		pointers[name] = "/folders"
		add(name, c.Folders[name])
	}
	if len(folders) == 0 {
		return nil, &registry.ConfigError{Message: "no folder is named", Hint: "list folders as dirs: [/data/reports]"}
	}
	options := rootfs.Options{HardLinks: c.HardLinks, MaxBytes: c.MaxBytes}
	if options.MaxBytes == 0 {
		options.MaxBytes = maxBytes
	}
	// One at a time first, so that a fault has its place.
	for _, f := range folders {
		tree, err := rootfs.Open([]rootfs.Folder{f}, options)
		if err != nil {
			return nil, &registry.ConfigError{Pointer: pointers[f.Name], Message: err.Error()}
		}
		tree.Close()
	}
	return rootfs.Open(folders, options)
}
