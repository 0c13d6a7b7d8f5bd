package action_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agentd/agentd/action"
)

func Example() {
	registry := action.New(action.Options{})
	err := registry.Register(action.Action{
		ID: "greet", Name: "Greet", Description: "Greets a person by name", Permissions: []string{"x-office:greet"},
		Parameters: json.RawMessage(`{"type": "object", "properties": {"name": {"type": "string", "minLength": 1}}, "required": ["name"]}`),
		Returns:    json.RawMessage(`{"type": "string"}`),
	}, func(_ context.Context, params json.RawMessage, _ action.Context) (json.RawMessage, error) {
		var p struct{ Name string }
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, err
		}
		return json.Marshal("Good morning, " + p.Name)
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	user := action.Context{User: action.User{ID: "ada", Permissions: []string{"x-office:*"}}}
	for _, params := range []string{`{"name": "Grace"}`, `{"name": 7}`} {
		result, err := registry.Execute(context.Background(), "greet", json.RawMessage(params), user)
		fmt.Println(result.Success, string(result.Data), err)
	}
	// Output:
	// true "Good morning, Grace" <nil>
	// false  Invalid parameters of greet: /name expected type string but got number
}
