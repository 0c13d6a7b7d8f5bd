package codegen

import (
	"fmt"
	"strings"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/codegen/internal/golang"
	"github.com/agentd/agentd/codegen/internal/model"
	"github.com/agentd/agentd/codegen/internal/python"
	"github.com/agentd/agentd/codegen/internal/typescript"
)

// An API is the capabilities of one agent as types, from which a client can be
// written in every language.
type API struct{ model *model.API }

// NewAPI makes the API of a document that was loaded with its schemas
// compiled; without them it is an error.
func NewAPI(doc *capability.Document) (*API, error) {
	m, err := model.New(doc)
	if err != nil {
		return nil, fmt.Errorf("codegen: %w", err)
	}
	return &API{model: m}, nil
}

// A Language is what a client can be written in.
type Language struct {
	// Name is what --lang takes.
	Name string
	// path returns where the file of an agent goes below the output folder, with
	// slashes. Agents of one fleet can share a path; Write refuses that.
	path func(id string) string
	// emit writes the file, and standalone the one that needs no kit; nil where emit's
	// needs none.
	emit, standalone func(*model.API) []byte
	// serverPath and server are those of a skill to be written. imports is the import
	// path of the output folder in Go.
	serverPath func(id string) string
	server     func(api *model.API, imports string) []byte
}

// Languages lists the languages, the default first.
func Languages() []Language {
	return []Language{
		{
			Name: "ts", path: typescript.Path, emit: typescript.Emit, standalone: typescript.Standalone,
			serverPath: typescript.ServerPath, server: func(api *model.API, _ string) []byte { return typescript.Server(api) },
		},
		{Name: "go", path: golang.Path, emit: golang.Emit, serverPath: golang.ServerPath, server: golang.Server},
		{
			Name: "python", path: python.Path, emit: python.Emit, standalone: python.Standalone,
			serverPath: python.ServerPath, server: func(api *model.API, _ string) []byte { return python.Server(api) },
		},
	}
}

// Standalone returns the language with clients that need no kit: they bring with them what
// they run on. Clients in Go are the same.
func (l Language) Standalone() Language {
	if l.standalone != nil {
		l.emit = l.standalone
	}
	return l
}

// Find returns a language by its name; the error lists the names.
func Find(name string) (Language, error) {
	var known []string
	for _, l := range Languages() {
		if l.Name == name {
			return l, nil
		}
		known = append(known, l.Name)
	}
	return Language{}, fmt.Errorf("codegen: no language %q; known are %s", name, strings.Join(known, ", "))
}

// A File is a generated file.
type File struct {
	// Path is relative to the output folder, with slashes.
	Path string
	// Content is what it holds.
	Content []byte
}

// Generate writes the client of api in language l.
func (l Language) Generate(api *API) File {
	return File{Path: l.path(api.model.Agent.ID()), Content: l.emit(api.model)}
}

// Server writes the file of a skill that serves api by way of the client in the same
// folder. Its functions are to be written, and the file is then its author's; see
// [File.WriteNew]. imports is the import path of the folder in Go, and nothing to other
// languages.
func (l Language) Server(api *API, imports string) File {
	return File{Path: l.serverPath(api.model.Agent.ID()), Content: l.server(api.model, imports)}
}
