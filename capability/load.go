package capability

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/strictyaml"
)

// LoadOptions configure a load. The zero value loads for inspection only.
type LoadOptions struct {
	// ValidateSchemas compiles every schema and refuses what cannot be
	// enforced. Without it, contracts hold sources and digests but no
	// validators.
	ValidateSchemas bool
	// Agent, if not empty, is the agent that the file must declare.
	Agent envelope.Address
	// Name is what faults call the file; "" is its path.
	Name string
	// SecondOpinion reviews each schema after it has compiled, if
	// ValidateSchemas is set. Nil leaves the judgement to package schema alone.
	SecondOpinion SecondOpinion
	// Schemas get the schemas that the load compiles, and it takes those that they have. Nil
	// compiles each schema anew.
	Schemas *Schemas
}

// A MissingError reports that there is no file. It matches [fs.ErrNotExist].
type MissingError struct {
	Path string
}

func (e *MissingError) Error() string { return "no capabilities config at " + e.Path }

// Is reports whether target is [fs.ErrNotExist].
func (e *MissingError) Is(target error) bool { return target == fs.ErrNotExist }

// Load reads the file at path and compiles its schemas. The error is a
// [*MissingError], a [*LoadError], or the operating system's error.
func Load(path string) (*Document, error) {
	return LoadWith(path, LoadOptions{ValidateSchemas: true})
}

// LoadWith is [Load] with options.
func LoadWith(path string, opts LoadOptions) (*Document, error) {
	if opts.Name == "" {
		opts.Name = path
	}
	file, err := strictyaml.ReadFile(path, opts.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &MissingError{Path: opts.Name}
	}
	if err != nil {
		return nil, fmt.Errorf("capabilities config: %w", err)
	}
	return decodeFile(file, opts)
}

// Parse is [LoadWith] for bytes. Faults call the source name; one that ends
// in .json is read as JSON, any other as YAML.
func Parse(name string, src []byte, opts LoadOptions) (*Document, error) {
	opts.Name = name
	file, err := strictyaml.Parse(name, src)
	if err != nil {
		return nil, err
	}
	return decodeFile(file, opts)
}

// DecodeTraced decodes a file that was parsed to be traced, see [strictyaml.ParseTraced].
func DecodeTraced(file *strictyaml.File) (*Document, error) {
	return decodeFile(file, LoadOptions{ValidateSchemas: true})
}

// Find returns the path of the capabilities file in an agent's directory, and
// whether there is one. The names are capabilities.yaml, .yml and .json; the
// first one that exists wins.
func Find(dir string) (path string, ok bool) {
	for _, name := range []string{"capabilities.yaml", "capabilities.yml", "capabilities.json"} {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path, true
		}
	}
	return "", false
}
