package skillapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/agentd/agentd/daemon/skillapi"
	"github.com/agentd/agentd/rpc"
)

func Example() {
	ctx := context.Background()
	server, err := skillapi.Listen(ctx, skillapi.Config{
		Caller: caller(echo), MaxPayloadBytes: func() int { return rpc.DefaultMaxPayloadBytes }, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		panic(err)
	}
	defer server.Shutdown(ctx)

	// The skill's process has these as AGENTD_URL and AGENTD_CALL.
	token, release := server.Register(rpc.WithInvocation(ctx, &rpc.Invocation{CorrelationID: "c-1"}))
	skill := skillapi.NewClient(server.URL(), token)
	defer skill.Close()
	nested := rpc.Request{To: "agent://echo", Capability: "echo", Payload: json.RawMessage(`"hello"`)}
	result, err := skill.RequestAgent(ctx, nested)
	fmt.Println(result.Status, string(result.Response), err)

	release() // the skill has answered
	_, err = skill.RequestAgent(ctx, nested)
	fmt.Println(err)
	// Output:
	// ok "hello" <nil>
	// EAGENTRPC_INVALID_REQUEST: the call that this request names in Agentd-Call has ended, or never existed
}
