package fleet_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/agentd/agentd/fleet"
)

func Example() {
	// The sample fleet stands at the root of this module.
	root, err := fleet.FindRoot(".")
	if err != nil {
		fmt.Println(err)
		return
	}
	f, err := fleet.Load(root, fleet.LoadOptions{})
	if err != nil {
		fmt.Println(err) // every fault of every file, a line each
		return
	}
	reviewer, _ := f.Member("pr-reviewer")
	skill, _ := reviewer.Agent.Skill("review-pr")
	fmt.Println(reviewer.Address, reviewer.Capabilities.Names(), skill.Process.Command)
	fmt.Println("clean:", !f.Lint().Failed())
	// Output:
	// agent://pr-reviewer [review-pr] [go run ./agents/pr-reviewer]
	// clean: true
}

func ExampleLoad_faults() {
	dir, err := os.MkdirTemp("", "fleet")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	text := "version: 1\nname: demo\nagnets: []\n"
	if err := os.WriteFile(filepath.Join(dir, fleet.ManifestName), []byte(text), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	_, err = fleet.Load(dir, fleet.LoadOptions{})
	if le, ok := err.(*fleet.LoadError); ok {
		for _, f := range le.Faults {
			fmt.Printf("line %d: %s\n", f.Line, f.Message)
		}
	}
	// Output:
	// line 1: the key "agents" is missing
	// line 3: unknown key "agnets"
}
