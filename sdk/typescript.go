package sdk

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/agentd/agentd"
)

//go:embed typescript/README.md
var typescriptReadme []byte

// TypeScriptTarball returns the kit for TypeScript as `npm pack` would: a package to install.
func TypeScriptTarball() (Archive, error) {
	files, err := TypeScriptPackage()
	if err != nil {
		return Archive{}, err
	}
	var all []file
	var manifest struct{ Name, Version string }
	for _, f := range files {
		name := strings.TrimPrefix(f.Name, typescriptPackage+"/")
		if name == "package.json" {
			if err := json.Unmarshal(f.Data, &manifest); err != nil {
				return Archive{}, fmt.Errorf("sdk: typescript/package.json: %w", err)
			}
		}
		all = append(all, file{"package/" + name, f.Data})
	}
	name := strings.ReplaceAll(strings.TrimPrefix(manifest.Name, "@"), "/", "-")
	data, err := tarred(all)
	return Archive{Name: name + "-" + manifest.Version + ".tgz", Data: data}, err
}

// typescriptPackage is the name of the package, which is its path in node_modules.
const typescriptPackage = "@agentd/sdk"

// TypeScriptPackage returns the files of the kit for TypeScript, named from a folder
// node_modules: @agentd/sdk/package.json and so on.
func TypeScriptPackage() ([]Archive, error) {
	const folder = "sdk/typescript"
	license, err := agentd.Kits.ReadFile("LICENSE")
	if err != nil {
		return nil, err
	}
	files := []Archive{{typescriptPackage + "/LICENSE", license}, {typescriptPackage + "/README.md", typescriptReadme}}
	// What stands in dist is compiled from src: a test of the folder holds it to that.
	err = fs.WalkDir(agentd.Kits, folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := agentd.Kits.ReadFile(name)
		files = append(files, Archive{Name: path.Join(typescriptPackage, strings.TrimPrefix(name, folder)), Data: data})
		return err
	})
	return files, err
}
