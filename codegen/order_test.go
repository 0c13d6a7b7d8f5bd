package codegen_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/codegen"
)

// Where the digest of two files is the same, so is every name in their clients: a file
// whose keys were put into another order calls what it called before.
func TestNamesDependOnNoOrder(t *testing.T) {
	text, err := os.ReadFile(goldens()["shapes"])
	if err != nil {
		t.Fatal(err)
	}
	var file yaml.Node
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	reverse(&file, "")
	reversed, err := yaml.Marshal(&file)
	if err != nil {
		t.Fatal(err)
	}
	var digests []string
	lines := map[string][]string{}
	for _, text := range [][]byte{text, reversed} {
		doc, err := capability.Parse("shapes.yaml", text, capability.LoadOptions{ValidateSchemas: true})
		if err != nil {
			t.Fatal(err)
		}
		api, err := codegen.NewAPI(doc)
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, doc.Digest())
		for _, l := range codegen.Languages() {
			var all []string
			for line := range strings.Lines(string(l.Generate(api).Content)) {
				if !strings.Contains(line, "Capabilities: ") {
					all = append(all, strings.Join(strings.Fields(line), " ")) // gofmt aligns neighbours
				}
			}
			slices.Sort(all)
			lines[l.Name] = append(lines[l.Name], strings.Join(all, "\n"))
		}
	}
	if digests[0] != digests[1] || string(text) == string(reversed) {
		t.Fatal("the files are to differ in order alone")
	}
	for lang, of := range lines {
		if of[0] != of[1] {
			t.Errorf("%s: another order gives another client: %s", lang, firstDifference([]byte(of[1]), []byte(of[0])))
		}
	}
}

// reverse turns the order around of what has none: capabilities, and the members of
// properties and definitions.
func reverse(n *yaml.Node, key string) {
	switch {
	case n.Kind == yaml.SequenceNode && key == "capabilities":
		slices.Reverse(n.Content)
	case n.Kind == yaml.MappingNode && (key == "properties" || key == "definitions"):
		for i, j := 0, len(n.Content)-2; i < j; i, j = i+2, j-2 {
			n.Content[i], n.Content[j] = n.Content[j], n.Content[i]
			n.Content[i+1], n.Content[j+1] = n.Content[j+1], n.Content[i+1]
		}
	}
	for i, child := range n.Content {
		name := ""
		if n.Kind == yaml.MappingNode && i%2 == 1 {
			name = n.Content[i-1].Value
		}
		reverse(child, name)
	}
}
