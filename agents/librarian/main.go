// Command librarian is the skill behind the capability search-notes of the
// sample fleet: it searches the Markdown files in agents/librarian/notes.
package main

import (
	"context"
	"errors"
	"os"
	"path"

	"github.com/agentd/agentd/agents/librarian/search"
	"github.com/agentd/agentd/skill/sdk"
)

// notesDir is where the notes are, relative to the fleet's folder.
const notesDir = "agents/librarian/notes"

// defaultLimit is the default of the input schema: validation fills none in.
const defaultLimit = 5

// input is the payload of search-notes.
type input struct {
	Query string `json:"query"`
	Limit *int   `json:"limit"`
}

// output is its result.
type output struct {
	Results []search.Result `json:"results"`
}

func main() { sdk.Main(searchNotes) }

func searchNotes(ctx context.Context, in input) (output, error) {
	root := sdk.EnvironmentFrom(ctx).FleetRoot
	if root == "" {
		return output{}, errors.New(sdk.EnvFleetRoot + " is not set; the notes are in the fleet's folder")
	}
	index, err := search.Load(os.DirFS(path.Join(root, notesDir)), notesDir)
	if err != nil {
		return output{}, &sdk.PublicError{Message: "the notes cannot be read", Cause: err}
	}
	limit := defaultLimit
	if in.Limit != nil {
		limit = *in.Limit
	}
	return output{Results: index.Search(in.Query, limit)}, nil
}
