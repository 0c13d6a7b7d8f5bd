package audio_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/audio"
)

func Example() {
	// A server of the house in place of OpenAI's.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"text": "Good morning."}`)
	}))
	defer server.Close()
	known := registry.New()
	if err := known.Register(audio.Resolver{}); err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	agent, err := known.Resolve(registry.Context{Context: ctx, Agent: "listener"}, []registry.Capability{
		{Key: "audio", Config: json.RawMessage(`{"endpoint": "` + server.URL + `/v1"}`)},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer agent.Close(ctx)
	result := agent.Call(ctx, "transcribe", json.RawMessage(`{"data": "UklGRiQAAABXQVZFZm10IA=="}`))
	fmt.Printf("%s\n", result.StructuredContent)
	// Output: {"text":"Good morning."}
}
