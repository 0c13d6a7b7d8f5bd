package watch_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/agentd/agentd/daemon/watch"
)

func Example() {
	dir, err := os.MkdirTemp("", "watch")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "agent.yaml")
	ctx, cancel := context.WithCancel(context.Background())
	w := watch.Watcher{
		Files: func() []string {
			go os.WriteFile(file, nil, 0o600)
			return []string{file}
		},
		Changed: cancel,
	}
	err = w.Run(ctx)
	fmt.Println(err, context.Cause(ctx))
}
