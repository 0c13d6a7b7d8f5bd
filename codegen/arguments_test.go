package codegen_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/codegen/testdata/golden/shapes/shapes"
	"github.com/agentd/agentd/codegen/typed"
	"github.com/agentd/agentd/codegen/typedrpc"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/memory"
)

// shapesServer implements some of the capabilities.
type shapesServer struct{ shapes.Server }

func (shapesServer) Empty(context.Context, shapes.EmptyRequest) (shapes.EmptyResponse, error) {
	return shapes.EmptyResponse{}, nil
}

func (shapesServer) Maps(_ context.Context, in shapes.MapsRequest) (shapes.MapsResponse, error) {
	return shapes.MapsResponse{Name: "maps", Size: typed.Ptr(int64(len(in)))}, nil
}

func (shapesServer) GetUser_5d95(_ context.Context, in shapes.GetUser_5d95Request) (shapes.GetUser_5d95Response, error) {
	return json.Marshal(in.ID)
}

// A generated server behind a real callee takes calls without arguments wherever the
// schema does, from callers that check and from those that do not.
func TestGeneratedServerTakesCallsWithoutArguments(t *testing.T) {
	doc, err := capability.Load(goldens()["shapes"])
	if err != nil {
		t.Fatal(err)
	}
	var mux typed.Mux
	shapes.RegisterServer(&mux, shapesServer{})
	bus := memory.NewBus(memory.Options{})
	near, far := bus.Connect(), bus.Connect()
	inbox, err := callee.New(callee.Config{Self: doc.Agent, Contract: doc, Handlers: typedrpc.Handlers(&mux), Records: rpc.Records{Auditor: discard{}}})
	if err != nil {
		t.Fatal(err)
	}
	const topic = "agents.shapes.requests"
	if err := inbox.Listen(far, topic); err != nil {
		t.Fatal(err)
	}
	for _, contract := range []*capability.Document{doc, nil} {
		client, err := caller.New(caller.Config{
			Self: "agent://desk", Records: rpc.Records{Auditor: discard{}}, Transports: []transport.Transport{near},
			Peers: rpc.Peers{doc.Agent: {Address: doc.Agent, Transport: "memory", Topic: topic, Contract: contract}},
		})
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{"empty": `{}`, "maps": `{"name":"maps","size":0}`, "get-user": `null`, "tree": "violation"} {
			for _, payload := range []string{"", "null", " null\n"} {
				res, err := client.RequestAgent(t.Context(), rpc.Request{To: doc.Agent, Capability: name, Payload: json.RawMessage(payload), Timeout: 20 * time.Second})
				if want == "violation" {
					if res.Status != rpc.StatusSchemaViolation || len(res.Violations) == 0 || res.Violations[0].Path != "/value" {
						t.Errorf("%s, %q: %+v", name, payload, res)
					}
				} else if err != nil || string(res.Response) != want {
					t.Errorf("%s, %q: %s, %v, want %s", name, payload, res.Response, err, want)
				}
			}
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := inbox.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if near.Close() != nil || far.Close() != nil {
		t.Error("the bus does not close")
	}
}
