package sdk

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
	kits "github.com/agentd/agentd/sdk"
)

// A Format is what a kit is written as.
type Format string

// The formats: of the kit for Python, of that for TypeScript, and of both.
const (
	Wheel   Format = "wheel"
	Sdist   Format = "sdist"
	Tarball Format = "tarball"
	// Dir is the package itself, for programs that keep a copy of it.
	Dir Format = "dir"
)

// Python writes the kit for Python below a folder, which it creates.
func Python(env *cli.Env, out string, format Format) error {
	var files []kits.Archive
	var err error
	switch format {
	case Wheel:
		files, err = single(kits.PythonWheel())
	case Sdist:
		files, err = single(kits.PythonSdist())
	case Dir:
		files, err = kits.PythonPackage()
	default:
		return cli.Usage("--format: must be %s, %s or %s, not %q", Wheel, Sdist, Dir, format)
	}
	if err != nil {
		return err
	}
	return write(env, out, files)
}

// TypeScript writes the kit for TypeScript below a folder, which it creates.
func TypeScript(env *cli.Env, out string, format Format) error {
	var files []kits.Archive
	var err error
	switch format {
	case Tarball:
		files, err = single(kits.TypeScriptTarball())
	case Dir:
		files, err = kits.TypeScriptPackage()
	default:
		return cli.Usage("--format: must be %s or %s, not %q", Tarball, Dir, format)
	}
	if err != nil {
		return err
	}
	return write(env, out, files)
}

func single(a kits.Archive, err error) ([]kits.Archive, error) { return []kits.Archive{a}, err }

// write writes files below a folder, and prints their names.
func write(env *cli.Env, out string, files []kits.Archive) error {
	type written struct {
		Path  string `json:"path"`
		Bytes int    `json:"bytes"`
	}
	all := make([]written, 0, len(files))
	for _, f := range files {
		name := filepath.Join(out, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil { //nolint:gosec // as the files in it are
			return err
		}
		if err := os.WriteFile(name, f.Data, 0o644); err != nil { //nolint:gosec // it is for everybody, as what it is installed from
			return err
		}
		all = append(all, written{name, len(f.Data)})
	}
	if env.Format != output.Table {
		return env.WriteJSON(all)
	}
	for _, f := range all {
		fmt.Fprintln(env.Stdout, f.Path)
	}
	return nil
}
