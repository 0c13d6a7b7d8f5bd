package nats_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats"
)

// calleeVariable makes this test binary a callee, of the broker at the value, whose
// skill never answers.
const calleeVariable = "AGENTD_TEST_CALLEE_OF"

func TestMain(m *testing.M) {
	if url := os.Getenv(callerVariable); url != "" {
		if err := waitingCaller(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if url := os.Getenv(calleeVariable); url != "" {
		if err := stuckCallee(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func stuckCallee(url string) error {
	conn, err := nats.Connect(context.Background(), nats.Options{Servers: []string{url}})
	if err != nil {
		return err
	}
	doc, err := capability.Parse("capabilities.yaml", []byte(echoContract), capability.LoadOptions{ValidateSchemas: true})
	if err != nil {
		return err
	}
	inbox, err := callee.New(callee.Config{
		Self: calleeAddress, Contract: doc, Records: rpc.Records{Auditor: make(ledger, 1)},
		Handlers: map[string]rpc.Handler{"echo": rpc.HandlerFunc(func(ctx context.Context, _ *rpc.Invocation) (json.RawMessage, error) {
			fmt.Println("begun")
			<-ctx.Done()
			return nil, ctx.Err()
		})},
	})
	if err != nil {
		return err
	}
	if err := inbox.Listen(conn, requestsTopic(calleeAddress)); err != nil {
		return err
	}
	fmt.Println("ready")
	select {} // until killed
}

// A callee that is killed in the middle of a call cannot say so: the call ends
// at its deadline, and the next one finds nobody.
func TestCalleeKilled(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), calleeVariable+"="+server.URL())
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make(chan string, 4)
	go func() {
		for scan := bufio.NewScanner(out); scan.Scan(); {
			said <- scan.Text()
		}
	}()
	kill := func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // the error is that it was killed
	}
	defer kill()
	if line := wait(t, said); line != "ready" {
		t.Fatalf("the callee said %q", line)
	}
	client := callerOnly(t, server.URL())
	ended := make(chan ending, 1)
	p := &pair{client: client}
	go func() { ended <- p.call(t, 3*time.Second) }()
	if line := wait(t, said); line != "begun" {
		t.Fatalf("the callee said %q", line)
	}
	kill()
	if e := wait(t, ended); e.code() != rpc.CodeTimeout {
		t.Errorf("the call ended with %v, want a timeout", e.result.Error)
	}
	if e := p.call(t, 10*time.Second); e.code() != rpc.CodeNoResponders {
		t.Errorf("the next call ended with %v, want NoResponders", e.result.Error)
	}
}

// callerOnly is a client whose callee is elsewhere.
func callerOnly(t *testing.T, url string) *caller.Client {
	t.Helper()
	client, err := caller.New(caller.Config{
		Self: callerAddress, Records: rpc.Records{Auditor: nobodyAudits{t}},
		Transports: []transport.Transport{connect(t, nats.Options{Servers: []string{url}})},
		Peers:      rpc.Peers{calleeAddress: {Address: calleeAddress, Transport: "nats", Topic: requestsTopic(calleeAddress)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// A cluster that loses the node of both ends carries their calls by another. Each
// end was told of one node alone and learned of the others from it.
func TestClusterLosesNode(t *testing.T) {
	t.Parallel()
	cluster := natstest.RunCluster(t, 3)
	p := newPair(t, cluster[0].URL(), cluster[0].URL(), 1000, nil)
	endings, stop := p.load(t, 50, 5*time.Second)
	defer stop()
	seen := until(t, endings, 200, ok, 0)
	cluster[0].Stop()
	// Nobody need notice: only calls that began afterwards show that all is well.
	stopped := time.Now()
	seen = append(seen, until(t, endings, 500, func(e ending) bool { return ok(e) && e.deadline.After(stopped.Add(5*time.Second)) },
		0, rpc.CodeDisconnected, rpc.CodeNoResponders)...)
	stop()
	p.noLateDelivery(t, seen)
}
