package search_test

import (
	"fmt"
	"testing/fstest"

	"github.com/agentd/agentd/agents/librarian/search"
)

func Example() {
	notes := fstest.MapFS{
		"secrets.md": {Data: []byte("# Secrets\n\n## A key leaked\n\nRevoke it first.\nThen tell #security.\n")},
		"tests.md":   {Data: []byte("# Tests\n\nA test is the key to a calm release.\n")},
	}
	index, err := search.Load(notes, "notes")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range index.Search("leaked keys", 5) {
		fmt.Printf("%s (%s:%d) %s\n", r.Title, r.Path, r.Line, r.Excerpt)
	}
	// Output:
	// Secrets: A key leaked (notes/secrets.md:5) Revoke it first. Then tell #security.
	// Tests (notes/tests.md:3) A test is the key to a calm release.
}
