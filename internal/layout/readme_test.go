package layout

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/rpc"
)

// The tests run in the repository's root, where the sample fleet is.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "agentd")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		for name, value := range map[string]string{"XDG_STATE_HOME": dir, "XDG_RUNTIME_DIR": dir} {
			if err := os.Setenv(name, value); err != nil {
				panic(err)
			}
		}
		if err := os.Chdir(filepath.Join("..", "..")); err != nil {
			panic(err)
		}
		return m.Run()
	}())
}

func Example_readme() {
	slog.SetLogLoggerLevel(slog.LevelError)
	if err := ask(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// schema-violation
	// /severity value not in enum ["low","med","high"]
}

func ask(ctx context.Context) error {
	f, err := fleet.Load(".", fleet.LoadOptions{})
	if err != nil {
		return err
	}
	paths, err := daemon.DefaultPaths(f.Name, f.Root, os.Getenv)
	if err != nil {
		return err
	}
	running, err := daemon.StartFleet(ctx, daemon.Config{Fleet: f, Paths: paths, Logger: slog.Default()})
	if err != nil {
		return err
	}
	defer running.Stop(ctx)
	concierge, _ := running.Daemon("concierge")
	result, _ := concierge.Client().RequestAgent(ctx, rpc.Request{
		To: "agent://pr-reviewer", Capability: "review-pr",
		Payload: json.RawMessage(`{"prUrl":"https://github.com/o/r/pull/1","severity":"critical"}`),
	})
	fmt.Println(result.Status) // ok, error, timeout, abandoned, busy or schema-violation
	for _, v := range result.Violations {
		fmt.Println(v.Path, v.Message)
	}
	return nil
}
