package sdk

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"path"
	"regexp"

	"github.com/agentd/agentd"
)

// The modules are in agentd.Kits, for other uses of them.
//
//go:embed python/README.md python/pyproject.toml
var python embed.FS

// pythonDistribution is the name of the distribution as it stands in file names.
const pythonDistribution = "agentd_sdk"

// PythonWheel returns the kit for Python as a wheel, by the Binary Distribution Format of the
// Python packaging specifications.
func PythonWheel() (Archive, error) {
	p, err := readPyproject()
	if err != nil {
		return Archive{}, err
	}
	files, err := PythonPackage()
	if err != nil {
		return Archive{}, err
	}
	license, err := agentd.Kits.ReadFile("LICENSE")
	if err != nil {
		return Archive{}, err
	}
	info := pythonDistribution + "-" + p.version + ".dist-info/"
	var all []file
	for _, f := range files {
		all = append(all, file{f.Name, f.Data})
	}
	all = append(all,
		file{info + "licenses/LICENSE", license},
		file{info + "METADATA", p.metadata},
		file{info + "WHEEL", []byte("Wheel-Version: 1.0\nGenerator: agentd\nRoot-Is-Purelib: true\nTag: py3-none-any\n")},
	)
	all = append(all, file{info + "RECORD", record(all, info+"RECORD")})
	data, err := zipped(all)
	return Archive{Name: pythonDistribution + "-" + p.version + "-py3-none-any.whl", Data: data}, err
}

// record lists the files of a wheel with their hashes.
func record(files []file, self string) []byte {
	var b bytes.Buffer
	for _, f := range files {
		sum := sha256.Sum256(f.data)
		fmt.Fprintf(&b, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.data))
	}
	fmt.Fprintf(&b, "%s,,\n", self)
	return b.Bytes()
}

// PythonSdist returns the kit for Python as a source distribution, which pip builds with
// setuptools.
func PythonSdist() (Archive, error) {
	p, err := readPyproject()
	if err != nil {
		return Archive{}, err
	}
	license, err := agentd.Kits.ReadFile("LICENSE")
	if err != nil {
		return Archive{}, err
	}
	files, err := PythonPackage()
	if err != nil {
		return Archive{}, err
	}
	root := pythonDistribution + "-" + p.version
	all := []file{
		{root + "/PKG-INFO", p.metadata}, {root + "/LICENSE", license},
		{root + "/README.md", p.readme}, {root + "/pyproject.toml", p.pyproject},
	}
	for _, f := range files {
		all = append(all, file{root + "/src/" + f.Name, f.Data})
	}
	data, err := tarred(all)
	return Archive{Name: root + ".tar.gz", Data: data}, err
}

// PythonPackage returns the modules of the kit for Python, named from the folder above the
// package: agentd/__init__.py and so on.
func PythonPackage() ([]Archive, error) {
	const folder = "sdk/python/src/agentd"
	entries, err := agentd.Kits.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	files := make([]Archive, 0, len(entries))
	for _, e := range entries {
		data, err := agentd.Kits.ReadFile(path.Join(folder, e.Name()))
		if err != nil {
			return nil, err
		}
		files = append(files, Archive{Name: "agentd/" + e.Name(), Data: data})
	}
	return files, nil
}

// A pyproject is what the archives need of pyproject.toml.
type pyproject struct {
	version           string
	metadata          []byte // of the core metadata specification, version 2.4
	readme, pyproject []byte // the files
}

func readPyproject() (p pyproject, err error) {
	text := map[string]string{}
	read := func(fs embed.FS, folder, name string) {
		data, ferr := fs.ReadFile(folder + name)
		text[name], err = string(data), errors.Join(err, ferr)
	}
	read(python, "python/", "pyproject.toml")
	read(python, "python/", "README.md")
	read(agentd.Kits, "sdk/python/src/agentd/", "version.py")
	if err != nil {
		return p, err
	}
	find := func(name, key string) string {
		found := regexp.MustCompile(`(?m)^` + key + ` = "(.*)"$`).FindStringSubmatch(text[name])
		if found == nil {
			err = fmt.Errorf("sdk: python/%s has no line %s = \"…\"", name, key)
			return ""
		}
		return found[1]
	}
	p.version = find("version.py", "__version__")
	var b bytes.Buffer
	fmt.Fprintf(&b, "Metadata-Version: 2.4\nName: %s\nVersion: %s\n", find("pyproject.toml", "name"), p.version)
	fmt.Fprintf(&b, "Summary: %s\n", find("pyproject.toml", "description"))
	fmt.Fprintf(&b, "License-Expression: %s\nLicense-File: LICENSE\n", find("pyproject.toml", "license"))
	for _, c := range regexp.MustCompile(`(?m)^    "(.* :: .*)",$`).FindAllStringSubmatch(text["pyproject.toml"], -1) {
		fmt.Fprintf(&b, "Classifier: %s\n", c[1])
	}
	fmt.Fprintf(&b, "Requires-Python: %s\nDescription-Content-Type: text/markdown\n\n%s", find("pyproject.toml", "requires-python"), text["README.md"])
	p.metadata, p.readme, p.pyproject = b.Bytes(), []byte(text["README.md"]), []byte(text["pyproject.toml"])
	return p, err
}
