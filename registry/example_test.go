package registry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agentd/agentd/registry"
)

// words is a capability of somebody else's program. Registering it is all that it
// takes for agents to list it.
type words struct{}

func (words) Key() string { return "words" }

func (words) Tools() []registry.Tool {
	return []registry.Tool{
		{Key: "count_words", Name: "Count words", Description: "Counts the words of a text."},
		{Key: "shout", Name: "Shout", Description: "Puts a text in capitals."},
	}
}

func (words) ConfigSchema() json.RawMessage {
	return json.RawMessage(`{"type": "object", "properties": {"separator": {"type": "string", "minLength": 1}}, "additionalProperties": false}`)
}

func (words) Resolve(_ registry.Context, c registry.Config) (*registry.Server, error) {
	config := struct{ Separator string }{" "}
	if err := json.Unmarshal(c.JSON, &config); err != nil {
		return nil, err
	}
	type text struct{ Text string }
	input := json.RawMessage(`{"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}`)
	s := registry.NewServer("words", "1.0.0", c.Tools)
	if err := s.Add(registry.ToolSpec{
		Key: "count_words", Description: "Counts the words of a text.", ReadOnly: true, Input: input,
		Output: json.RawMessage(`{"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}`),
	}, func(_ context.Context, args json.RawMessage) (json.RawMessage, error) {
		var a text
		if err := json.Unmarshal(args, &a); err != nil {
			return nil, err
		}
		return json.Marshal(map[string]int{"count": len(strings.Split(a.Text, config.Separator))})
	}); err != nil {
		return nil, err
	}
	// The list of tools below leaves this one out: Add does not register it.
	err := s.Add(registry.ToolSpec{Key: "shout", Description: "Puts a text in capitals.", Input: input},
		func(_ context.Context, args json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(strings.ToUpper(string(args))), nil
		})
	return s, err
}

func Example() {
	capabilities, err := registry.Parse("agent.json", []byte(`{"capabilities": {"words": {"separator": ",", "tools": ["count_words"]}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	known := registry.New()
	if err := known.Register(words{}); err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	agent, err := known.Resolve(registry.Context{Context: ctx, Agent: "writer"}, capabilities)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer agent.Close(ctx)
	for _, call := range []struct{ tool, args string }{
		{"count_words", `{"text": "one,two,three"}`},
		{"count_words", `{"txt": "one"}`},
		{"shout", `{"text": "one"}`},
	} {
		result := agent.Call(ctx, call.tool, json.RawMessage(call.args))
		if code := registry.FailureCode(result); code != "" {
			fmt.Println(code)
			continue
		}
		fmt.Printf("%s\n", result.StructuredContent)
	}
	// Output:
	// {"count":3}
	// invalid_arguments
	// not_found
}
