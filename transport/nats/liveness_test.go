package nats_test

import (
	"context"
	"encoding/json"
	"errors"
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

func TestListening(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, "")
	near, far := connect(t, nats.Options{Servers: []string{s.URL()}}), connect(t, nats.Options{Servers: []string{s.URL()}})
	got := make(chan transport.Message, 10)
	inbox, err := far.OpenInbox(func(m transport.Message) { got <- m })
	if err != nil {
		t.Fatal(err)
	}
	topic := inbox.Topic("c-1")
	if !near.Listening(t.Context(), topic) {
		t.Error("somebody listens, and is not found")
	}
	for _, other := range []string{"agents.x.responses", "_INBOX.", "", "x"} {
		if !near.Listening(t.Context(), other) {
			t.Errorf("%q is no inbox: nothing is known of it", other)
		}
	}
	if err := inbox.Close(); err != nil {
		t.Fatal(err)
	}
	if err := far.Client().Flush(); err != nil { // the server has heard of it
		t.Fatal(err)
	}
	if near.Listening(t.Context(), topic) {
		t.Error("nobody listens any more")
	}
	s.Stop()
	if !near.Listening(t.Context(), topic) {
		t.Error("without a server nothing is known")
	}
	if len(got) > 0 {
		t.Errorf("the question came through: %+v", <-got)
	}
}

// callerVariable makes this test binary a caller, of the broker at the value, that
// waits for a skill.
const callerVariable = "AGENTD_TEST_CALLER_OF"

func waitingCaller(url string) error {
	conn, err := nats.Connect(context.Background(), nats.Options{Servers: []string{url}})
	if err != nil {
		return err
	}
	client, err := caller.New(caller.Config{
		Self: callerAddress, Records: rpc.Records{Auditor: make(ledger, 1)}, Transports: []transport.Transport{conn},
		Peers: rpc.Peers{calleeAddress: {Address: calleeAddress, Transport: "nats", Topic: requestsTopic(calleeAddress)}},
	})
	if err != nil {
		return err
	}
	_, err = client.RequestAgent(context.Background(), rpc.Request{To: calleeAddress, Capability: "echo", Payload: json.RawMessage(`{"nonce":1}`), Timeout: rpc.MaxTimeout})
	return err
}

// A caller that is killed cannot cancel its call: the skill is stopped all the same,
// long before its deadline, and those of callers that live run on.
func TestCallerKilled(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, "")
	doc, err := capability.Parse("capabilities.yaml", []byte(echoContract), capability.LoadOptions{ValidateSchemas: true})
	if err != nil {
		t.Fatal(err)
	}
	begun, causes := make(chan string, 2), make(chan error, 2)
	inbox, err := callee.New(callee.Config{
		Self: calleeAddress, Contract: doc, Records: rpc.Records{Auditor: nobodyAudits{t}}, Limits: callee.Limits{CallerCheck: 100 * time.Millisecond},
		Handlers: map[string]rpc.Handler{"echo": rpc.HandlerFunc(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
			begun <- string(inv.Payload)
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return nil, ctx.Err()
		})},
	})
	if err != nil {
		t.Fatal(err)
	}
	conn := connect(t, nats.Options{Servers: []string{s.URL()}})
	for _, topic := range []string{requestsTopic(calleeAddress), "agents.callee.other"} { // one watch for both
		if err := inbox.Listen(conn, topic); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), callerVariable+"="+s.URL())
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // the error is that it was killed
	}
	defer kill()
	wait(t, begun)
	p := &pair{client: callerOnly(t, s.URL())}
	lives := make(chan ending, 1)
	go func() { lives <- p.call(t, 3*time.Second) }()
	wait(t, begun)
	kill()
	if cause := wait(t, causes); !errors.Is(cause, callee.ErrCallerGone) {
		t.Errorf("the skill ended with %v", cause)
	}
	if e := wait(t, lives); e.code() != rpc.CodeTimeout && e.code() != rpc.CodeDeadlineExceeded {
		t.Errorf("the call of the other caller ended with %v, and not at its deadline", e.result.Error)
	}
	if cause := wait(t, causes); errors.Is(cause, callee.ErrCallerGone) {
		t.Error("the other caller was taken for dead")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = inbox.Shutdown(ctx) // nothing runs any more
}
