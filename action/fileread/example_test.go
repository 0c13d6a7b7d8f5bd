package fileread_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/agentd/agentd/action/fileread"
)

func Example() {
	h, err := fileread.New(fileread.Config{Dir: os.TempDir()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close()
	_, err = h.Execute(context.Background(), json.RawMessage(`{"path": "../etc/passwd"}`))
	fmt.Println(err)
	// Output:
	// the path "../etc/passwd" has "..", which is not allowed
}
