package builtin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/agentd/agentd/action"
	"github.com/agentd/agentd/action/builtin"
)

func Example() {
	dir, err := os.MkdirTemp("", "notes-*")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "today.txt"), []byte("buy milk"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	opened, err := builtin.Open("file-read", `{"dir": "."}`, builtin.Env{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer opened.Close()
	registry := action.New(action.Options{})
	if err := registry.Register(opened.Action, opened.Run); err != nil {
		fmt.Println(err)
		return
	}
	user := action.Context{User: action.User{ID: "ada", Permissions: []string{"file:read"}}}
	result, err := registry.Execute(context.Background(), "file-read", json.RawMessage(`{"path": "today.txt"}`), user)
	fmt.Println(result.Success, string(result.Data), err)
	// Output:
	// true "buy milk" <nil>
}
