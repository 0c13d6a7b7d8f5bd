package worker_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/agentd/agentd/skill/sdk"
	"github.com/agentd/agentd/skill/worker"
)

// pipeEcho is the bare thing: what comes in a line goes out.
func pipeEcho() {
	in := bufio.NewReader(os.Stdin)
	for {
		text, err := in.ReadSlice('\n')
		if err != nil {
			os.Exit(0)
		}
		if _, err := os.Stdout.Write(text); err != nil {
			os.Exit(1)
		}
	}
}

// sdkEcho is a worker with the kit.
func sdkEcho() {
	sdk.Main(func(_ context.Context, in json.RawMessage) (json.RawMessage, error) { return in, nil }, sdk.Concurrent(64))
}

// BenchmarkGo compares calls of a Go worker with lines through the pipes of a Go program.
func BenchmarkGo(b *testing.B) {
	b.Run("pipe", func(b *testing.B) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = []string{"WORKER_TEST=pipe-echo"}
		in, err := cmd.StdinPipe()
		if err != nil {
			b.Fatal(err)
		}
		pipe, err := cmd.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		out := bufio.NewReader(pipe)
		for b.Loop() {
			if _, err := in.Write([]byte(`{"n":1}` + "\n")); err != nil {
				b.Fatal(err)
			}
			if _, err := out.ReadSlice('\n'); err != nil {
				b.Fatal(err)
			}
		}
		_ = in.Close()
		_ = cmd.Wait()
	})
	p, _ := pool(b, "sdk-echo", func(c *worker.Config) { c.Program.Env = c.Program.Env[:1] })
	mustCall(b, p, "echo", `{"n":1}`)
	b.Run("calls", func(b *testing.B) {
		for b.Loop() {
			mustCall(b, p, "echo", `{"n":1}`)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.SetParallelism(16)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := call(context.Background(), p, "echo", `{"n":1}`); err != nil {
					b.Error(err)
				}
			}
		})
	})
}
