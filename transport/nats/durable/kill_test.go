package durable_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/transport/nats/durable"
)

// replicaURL names the server in the environment of a process that is a replica.
const replicaURL = "AGENTD_TEST_REPLICA_OF"

var replicaOptions = durable.Options{AckWait: time.Second, MaxDeliver: 50}

// TestReplicaProcess is the callee of TestReplicasAreKilled: it says which requests
// it begins, and serves until it is killed.
func TestReplicaProcess(t *testing.T) {
	url := os.Getenv(replicaURL)
	if url == "" {
		return
	}
	var mu sync.Mutex
	work := func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		mu.Lock()
		fmt.Printf("begin %s\n", inv.Payload)
		mu.Unlock()
		select {
		case <-time.After(20 * time.Millisecond): // what the skill does
			return inv.Payload, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	serveAs(t, replicaOptions, callee.Config{Contract: contract(t), Limits: callee.Limits{MaxInFlight: 4}}, work, url)
	_, _ = io.Copy(io.Discard, os.Stdin) // until whoever started it is gone
}

// Two replicas are killed (SIGKILL) again and again in the middle of requests, and
// replaced. No request is lost, and none is answered twice.
func TestReplicasAreKilled(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, "jetstream {}")
	begun := make(chan string, 10_000)
	type process struct {
		*exec.Cmd
		read chan struct{} // closed when all that it said is read
	}
	replica := func() process {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestReplicaProcess$")
		cmd.Env = append(os.Environ(), replicaURL+"="+s.URL())
		out, err := cmd.StdoutPipe()
		if err == nil {
			_, err = cmd.StdinPipe() // closed when this process ends
		}
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		read := make(chan struct{})
		go func() {
			defer close(read)
			for lines := bufio.NewScanner(out); lines.Scan(); {
				if payload, ok := strings.CutPrefix(lines.Text(), "begin "); ok {
					begun <- payload
				}
			}
		}()
		return process{cmd, read}
	}
	kill := func(p process) {
		if err := p.Process.Kill(); err != nil {
			t.Error(err)
		}
		<-p.read
		_ = p.Wait() // it was killed
	}
	const calls, kills = 150, 6
	replicas := []process{replica(), replica()}
	defer func() {
		for _, r := range replicas {
			kill(r)
		}
	}()
	runs := map[string]int{}
	next := func() {
		select {
		case payload := <-begun:
			runs[payload]++
		case <-time.After(limit):
			t.Fatal("nothing is served")
		}
	}
	c := client(t, s.URL())
	ids := make([]string, calls)
	for i := range ids {
		if i == 0 { // the first waits for the streams
			r, err := c.RequestAgent(t.Context(), request(i, rpc.ModeSync, limit))
			for err != nil && rpc.CodeOf(err) == rpc.CodeNoResponders {
				r, err = c.RequestAgent(t.Context(), request(i, rpc.ModeSync, limit))
			}
			if err != nil || string(r.Response) != `{"n":0}` {
				t.Fatal(r, err)
			}
			continue
		}
		ids[i] = start(t, c, i)
	}
	for i := range kills {
		for range 10 {
			next()
		}
		kill(replicas[i%2])
		replicas[i%2] = replica()
	}
	for i, id := range ids[1:] {
		if r, err := await(t, c, id); err != nil || string(r.Response) != fmt.Sprintf(`{"n":%d}`, i+1) {
			t.Errorf("call %d: %+v, %v", i+1, r, err)
		}
	}
	for len(runs) < calls {
		next()
	}
	for stream, want := range map[string]uint64{"AGENTD_RESULTS_callee_v2": calls, "AGENTD_DEAD_callee_v2": 0} {
		if state := stateOf(t, stream, s.URL()); state.Msgs != want || state.LastSeq != want {
			t.Errorf("%s holds %d messages of %d ever, and not %d", stream, state.Msgs, state.LastSeq, want)
		}
	}
	again := 0
	for _, n := range runs {
		again += n - 1
	}
	t.Logf("%d runs were repeated", again)
}
