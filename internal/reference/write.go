package reference

import (
	"bytes"
	"fmt"
	"strings"
)

// Generate makes all files, by their paths below root, from the sources there.
func Generate(root string) (map[string][]byte, error) {
	files, err := ReadFiles()
	if err != nil {
		return nil, err
	}
	const folder = "docs/reference/"
	out := map[string][]byte{folder + "README.md": index()}
	for _, f := range files {
		base := strings.TrimSuffix(f.Name, ".yaml")
		out[folder+base+".md"] = f.Page()
		if out[folder+"schemas/"+base+".schema.json"], err = f.Schema(); err != nil {
			return nil, fmt.Errorf("the schema of %s: %w", f.Name, err)
		}
	}
	for name, page := range map[string]func(string) ([]byte, error){"errors.md": ErrorPage, "exit-statuses.md": ExitPage, "schema-keywords.md": KeywordPage} {
		if out[folder+name], err = page(root); err != nil {
			return nil, err
		}
	}
	out["daemon/control/openapi.json"], err = OpenAPI(root)
	return out, err
}

// index is the page that leads to the others.
func index() []byte {
	var b bytes.Buffer
	b.WriteString(generated + `
# Reference

| page | |
|---|---|
`)
	for _, row := range [][2]string{
		{"fleet.md", "every key of `fleet.yaml`"},
		{"agent.md", "every key of `agent.yaml`"},
		{"capabilities.md", "every key of `capabilities.yaml`"},
		{"rpc-peers.md", "every key of `rpc-peers.yaml`"},
		{"identities.md", "every key of `identities.yaml`"},
		{"schema-keywords.md", "keywords of the schemas of payloads"},
		{"errors.md", "codes of errors, conditions and findings"},
		{"exit-statuses.md", "exit statuses of commands"},
		{"../../daemon/control/openapi.json", "the control API in OpenAPI 3.1, which a running agent serves at `GET /v1/openapi.json` of its socket"},
	} {
		fmt.Fprintf(&b, "| [%s](%s) | %s |\n", row[0], row[0], row[1])
	}
	b.WriteString(`
These pages are made of what the decoders ask for, so that they have every key and no other. The guides one folder up say how things are used.

## In an editor

[schemas](schemas) has a JSON Schema (draft-07) of each file. Editors with the YAML language server (VS Code with the extension YAML, Neovim, Helix,
JetBrains and others) complete keys, show what they mean and underline what is wrong, if the first line of a file names its schema:

` + "```yaml" + `
# yaml-language-server: $schema=https://raw.githubusercontent.com/agentd/agentd/main/docs/reference/schemas/agent.schema.json
name: desk
` + "```" + `

A path works as well, relative to the file: ` + "`$schema=../../agentd/docs/reference/schemas/agent.schema.json`" + `. In VS Code, the setting ` + "`yaml.schemas`" + ` names
schemas for all files of a name:

` + "```json" + `
{
  "yaml.schemas": {
    "docs/reference/schemas/fleet.schema.json": "fleet.yaml",
    "docs/reference/schemas/agent.schema.json": "agent.yaml",
    "docs/reference/schemas/capabilities.schema.json": "capabilities.yaml",
    "docs/reference/schemas/rpc-peers.schema.json": "rpc-peers.yaml",
    "docs/reference/schemas/identities.schema.json": "identities.yaml"
  }
}
` + "```" + `

A schema sees the shape of one file. ` + "`agentd fleet validate`" + ` reads all files together, and has the last word.
`)
	return b.Bytes()
}
