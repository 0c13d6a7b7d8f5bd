package dbquery_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/agentd/agentd/action/dbquery"
	"github.com/agentd/agentd/internal/sqlread"
)

func Example() {
	path := filepath.Join(os.TempDir(), "no-such-database.db")
	h, err := dbquery.New(dbquery.Config{Config: sqlread.Config{SQLite: path}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close()
	// A database that is not there yet is not made, and no fault of the agent.
	_, err = h.Execute(context.Background(), json.RawMessage(`{"query": "SELECT 1"}`))
	fmt.Println(err)
	// Output:
	// the database cannot be read at present
}
