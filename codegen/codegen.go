package codegen

import (
	"fmt"
	"strings"
)

// A Language is what a client can be written in.
type Language struct {
	// Name is what --lang takes.
	Name string
	// path is where the file of an agent stands below the output folder, with
	// slashes. Agents of one fleet can share a path; Write refuses that.
	path func(id string) string
	// emit writes the file.
	emit func(*API) []byte
}

// Languages lists the languages, the default first.
func Languages() []Language {
	return []Language{typeScript(), golang(), python()}
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
	return File{Path: l.path(api.Agent.ID()), Content: l.emit(api)}
}

// header is what every generated file says of itself, below its marker.
func (a *API) header() []string {
	names := make([]string, len(a.Capabilities))
	for i, c := range a.Capabilities {
		names[i] = c.Name
	}
	return []string{
		sourceLine(a.Agent.ID()),
		"Capabilities: " + strings.Join(names, ", "),
		"Digest: " + a.Digest,
	}
}

// sourceLine tells whose file it is; see Write.
func sourceLine(id string) string { return "Source: agent://" + id }
