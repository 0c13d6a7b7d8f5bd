package action_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/agentd/agentd/action"
)

// getWeather is the example of the guide to action registries, word for word.
const getWeather = `{
"id": "get-weather",
"name": "Get Weather",
"description": "Fetch current weather for a location",
"parameters": {
"type": "object",
"properties": {
"location": {
"type": "string",
"description": "City name or coordinates"
},
"unit": {
"type": "string",
"enum": ["celsius", "fahrenheit"],
"default": "celsius"
}
},
"required": ["location"]
},
"returns": {
"type": "object",
"properties": {
"temperature": { "type": "number" },
"condition": { "type": "string" },
"humidity": { "type": "number" }
}
},
"permissions": ["weather:read"],
"rateLimit": {
"requests": 100,
"window": "1h"
}
}`

func weatherAction(t testing.TB) action.Action {
	t.Helper()
	a, err := action.Parse([]byte(getWeather))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func handleGetWeather(_ context.Context, params json.RawMessage, _ action.Context) (json.RawMessage, error) {
	var p struct{ Location string }
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, err
	}
	return json.RawMessage(`{"temperature":21.5,"condition":"sun over ` + p.Location + `","humidity":0.4}`), nil
}

// caller is a user with these permissions.
func caller(permissions ...string) action.Context {
	return action.Context{User: action.User{ID: "agent://caller", Permissions: permissions}, TraceID: "trace-1"}
}

func register(t testing.TB, r *action.Registry, a action.Action, h action.Handler) {
	t.Helper()
	if err := r.Register(a, h); err != nil {
		t.Fatal(err)
	}
}

var paris = json.RawMessage(`{"location":"Paris"}`)

// The three tests of the guide, by their own sentences.
func TestCapabilitiesLayer(t *testing.T) {
	t.Run("should execute action with valid params", func(t *testing.T) {
		registry := action.New(action.Options{})
		register(t, registry, weatherAction(t), handleGetWeather)
		result, err := registry.Execute(t.Context(), "get-weather", paris, caller("weather:read"))
		if err != nil || !result.Success {
			t.Fatalf("%+v, %v", result, err)
		}
		var data map[string]any
		if err := json.Unmarshal(result.Data, &data); err != nil || data["temperature"] == nil {
			t.Errorf("%s has no temperature: %v", result.Data, err)
		}
	})
	t.Run("should reject action without permission", func(t *testing.T) {
		registry := action.New(action.Options{})
		register(t, registry, weatherAction(t), handleGetWeather)
		_, err := registry.Execute(t.Context(), "get-weather", paris, caller())
		if err == nil || !strings.Contains(err.Error(), "Permission denied") || action.As(err).Code != action.PermissionDenied {
			t.Errorf("%v", err)
		}
	})
	t.Run("should enforce rate limits", func(t *testing.T) {
		registry := action.New(action.Options{})
		register(t, registry, weatherAction(t), handleGetWeather)
		// Execute 100 times (the limit)
		for i := range 100 {
			if result, err := registry.Execute(t.Context(), "get-weather", paris, caller("weather:read")); err != nil || !result.Success {
				t.Fatalf("execution %d: %+v, %v", i, result, err)
			}
		}
		// 101st should fail
		_, err := registry.Execute(t.Context(), "get-weather", paris, caller("weather:read"))
		if err == nil || !strings.Contains(err.Error(), "Rate limit exceeded") || action.As(err).Code != action.RateLimitExceeded {
			t.Errorf("%v", err)
		}
		// It is the user's limit, and not that of all.
		other := caller("weather:read")
		other.User.ID = "agent://other"
		if _, err := registry.Execute(t.Context(), "get-weather", paris, other); err != nil {
			t.Errorf("another user: %v", err)
		}
	})
}

// What the guide says to do and not to do, as far as a machine can judge.
func TestDos(t *testing.T) {
	yes := caller("weather:read")
	weather := weatherAction(t)
	failing := func(err error) action.Handler {
		return func(context.Context, json.RawMessage, action.Context) (json.RawMessage, error) { return nil, err }
	}
	returning := func(data string) action.Handler {
		return func(context.Context, json.RawMessage, action.Context) (json.RawMessage, error) {
			return json.RawMessage(data), nil
		}
	}
	execute := func(t *testing.T, o action.Options, a action.Action, h action.Handler, params string) (action.Result, error) {
		t.Helper()
		r := action.New(o)
		register(t, r, a, h)
		return r.Execute(t.Context(), a.ID, json.RawMessage(params), yes)
	}
	t.Run("provide clear descriptions", func(t *testing.T) {
		a := weather
		a.Description = ""
		advised(t, a, "description")
	})
	t.Run("define comprehensive parameter schemas", func(t *testing.T) {
		a := weather
		a.Parameters = json.RawMessage(`{"type":"object","properties":{"location":{"description":"where"}}}`)
		advised(t, a, "the parameter location takes any value")
		a.Parameters = json.RawMessage(`{"type":"object","properties":{"location":{"typ":"string"}}}`)
		if err := action.Check(a); err == nil || !strings.Contains(err.Error(), "parameters") {
			t.Errorf("a faulty schema: %v", err)
		}
	})
	t.Run("document return values", func(t *testing.T) {
		a := weather
		a.Returns = nil
		advised(t, a, "returns")
	})
	t.Run("implement permission checks", func(t *testing.T) {
		for _, granted := range [][]string{nil, {"weather:write"}, {"weather:rea"}, {"weather:?"}, {"*"}, {"[w]eather:read"}} {
			r := action.New(action.Options{})
			register(t, r, weather, handleGetWeather)
			if _, err := r.Execute(t.Context(), "get-weather", paris, caller(granted...)); (err == nil) != (len(granted) > 0 && granted[0] == "*") {
				t.Errorf("%v: %v", granted, err)
			}
		}
	})
	t.Run("validate all inputs", func(t *testing.T) {
		ran := false
		h := func(context.Context, json.RawMessage, action.Context) (json.RawMessage, error) {
			ran = true
			return json.RawMessage(`{}`), nil
		}
		for _, params := range []string{``, `null`, `{}`, `{"location":7}`, `{"location":"x","unit":"kelvin"}`, `[]`, `{"location":"x"`, `{"location":"x","location":"y"}`} {
			_, err := execute(t, action.Options{}, weather, h, params)
			if action.As(err) == nil || action.As(err).Code != action.InvalidArguments || ran {
				t.Errorf("%s: %v, ran %v", params, err, ran)
			}
		}
	})
	t.Run("use rate limiting", func(t *testing.T) {
		a := weather
		a.RateLimit = nil
		advised(t, a, "rate limit")
		r := action.New(action.Options{})
		register(t, r, a, handleGetWeather)
		for i := 0; ; i++ {
			_, err := r.Execute(t.Context(), a.ID, paris, yes)
			if err != nil && action.As(err).Code == action.RateLimitExceeded {
				break
			}
			if i > 2*action.DefaultRateLimit().Requests {
				t.Fatal("an action without a limit of its own is executed without any")
			}
		}
	})
	t.Run("audit all action executions", func(t *testing.T) {
		var seen []string
		o := action.Options{Record: func(_ context.Context, e action.Execution) {
			code := action.Code("")
			if e.Err != nil {
				code = e.Err.Code
			}
			seen = append(seen, e.Action+" "+e.User+" "+e.TraceID+" "+string(code))
		}}
		r := action.New(o)
		register(t, r, weather, handleGetWeather)
		_, _ = r.Execute(t.Context(), "get-weather", paris, yes)
		_, _ = r.Execute(t.Context(), "get-weather", paris, caller())
		_, _ = r.Execute(t.Context(), "get-weather", json.RawMessage(`{}`), yes)
		_, _ = r.Execute(t.Context(), "get-wether", paris, yes)
		want := "get-weather agent://caller trace-1 \nget-weather agent://caller trace-1 permission_denied\nget-weather agent://caller trace-1 invalid_arguments\nget-wether agent://caller trace-1 not_found"
		if got := strings.Join(seen, "\n"); got != want {
			t.Errorf("recorded:\n%s", got)
		}
	})
	t.Run("sanitize outputs", func(t *testing.T) {
		for _, out := range []string{``, `{`, `{} {}`, "{\"condition\":\"\xff\"}", strings.Repeat(" ", 2000) + `{}`} {
			result, err := execute(t, action.Options{MaxResultBytes: 1000}, weather, returning(out), string(paris))
			if err != nil || result.Success || result.Data != nil {
				t.Errorf("%.20q got out: %+v, %v", out, result, err)
			}
		}
	})
	t.Run("return structured errors", func(t *testing.T) {
		_, err := execute(t, action.Options{}, weather, handleGetWeather, `{}`)
		data, _ := json.Marshal(action.As(err))
		if !strings.HasPrefix(string(data), `{"code":"invalid_arguments","message":"Invalid parameters of get-weather: /location `) || !strings.Contains(string(data), `"retryable":false,"violations":[{"path":"/location"`) {
			t.Errorf("%s", data)
		}
	})
	t.Run("log failures with context", func(t *testing.T) {
		log, lines := logTo()
		_, _ = execute(t, action.Options{Logger: log}, weather, failing(errDisk), string(paris))
		for _, want := range []string{"action=get-weather", "user=agent://caller", "trace=trace-1", "code=internal", errDisk.Error()} {
			if !strings.Contains(lines.String(), want) {
				t.Errorf("the log has no %s: %s", want, lines)
			}
		}
	})
	t.Run("provide helpful error messages", func(t *testing.T) {
		r := action.New(action.Options{})
		register(t, r, weather, handleGetWeather)
		_, err := r.Execute(t.Context(), "get-wether", paris, yes)
		if err == nil || err.Error() != `Action get-wether not found (did you mean "get-weather"?)` {
			t.Error(err)
		}
		_, err = r.Execute(t.Context(), "get-weather", paris, caller("http:read"))
		if err == nil || err.Error() != "Permission denied: get-weather needs weather:read" {
			t.Error(err)
		}
	})
}

func TestDonts(t *testing.T) {
	yes := caller("weather:read")
	weather := weatherAction(t)
	t.Run("skip parameter validation", func(t *testing.T) {
		for _, parameters := range []string{``, `true`, `{}`, `{"type":"string"}`, `{"type":["object","null"]}`} {
			a := weather
			a.Parameters = json.RawMessage(parameters)
			if action.New(action.Options{}).Register(a, handleGetWeather) == nil {
				t.Errorf("parameters %q are accepted", parameters)
			}
		}
	})
	t.Run("return inconsistent data structures", func(t *testing.T) {
		r := action.New(action.Options{})
		register(t, r, weather, func(context.Context, json.RawMessage, action.Context) (json.RawMessage, error) {
			return json.RawMessage(`{"temperature":"warm"}`), nil
		})
		result, err := r.Execute(t.Context(), "get-weather", paris, yes)
		if err != nil || result.Success || result.Error.Code != action.BadResult {
			t.Errorf("%+v, %v", result, err)
		}
	})
	t.Run("trust user inputs", func(t *testing.T) {
		r := action.New(action.Options{})
		register(t, r, weather, func(_ context.Context, params json.RawMessage, _ action.Context) (json.RawMessage, error) {
			copy(params, `{"location":"Rome?"}`) // a handler that writes to its parameters harms nobody
			return json.RawMessage(`{}`), nil
		})
		params := json.RawMessage(`{"location":"Paris"}`)
		if _, err := r.Execute(t.Context(), "get-weather", params, yes); err != nil || string(params) != string(paris) {
			t.Errorf("%s, %v", params, err)
		}
	})
	t.Run("expose internal errors", func(t *testing.T) {
		for name, h := range map[string]action.Handler{
			"error": func(context.Context, json.RawMessage, action.Context) (json.RawMessage, error) { return nil, errDisk },
			"panic": func(context.Context, json.RawMessage, action.Context) (json.RawMessage, error) { panic(errDisk) },
			"cause": func(context.Context, json.RawMessage, action.Context) (json.RawMessage, error) {
				return nil, action.Errorf(action.Unavailable, "try again later").Because(errDisk)
			},
		} {
			log, lines := logTo()
			r := action.New(action.Options{Logger: log})
			register(t, r, weather, h)
			out := r.Invoke(t.Context(), action.Invocation{CapabilityID: "get-weather", Parameters: paris}, yes)
			data, err := json.Marshal(out)
			if err != nil || out.Success || strings.Contains(string(data), "/srv/secret") || !strings.Contains(lines.String(), "/srv/secret") {
				t.Errorf("%s: %s, %v, log %s", name, data, err, lines)
			}
		}
	})
	t.Run("skip authorization", func(t *testing.T) {
		a := weather
		a.Permissions = nil
		if err := action.Check(a); err == nil || !strings.Contains(err.Error(), "permissions") {
			t.Errorf("an action that says nothing of permissions: %v", err)
		}
		a.Permissions = []string{"wether:read"}
		if err := action.Check(a); err == nil || !strings.Contains(err.Error(), "weather:read") {
			t.Errorf("a permission that nobody can have: %v", err)
		}
	})
	t.Run("throw raw exceptions", func(t *testing.T) {
		r := action.New(action.Options{})
		register(t, r, weather, func(context.Context, json.RawMessage, action.Context) (json.RawMessage, error) {
			var none []json.RawMessage
			return none[len(none)], nil
		})
		result, err := r.Execute(t.Context(), "get-weather", paris, yes)
		if err != nil || result.Success || result.Error.Code != action.Internal {
			t.Errorf("%+v, %v", result, err)
		}
	})
	t.Run("retry on permanent failures", func(t *testing.T) {
		for _, test := range []struct {
			code       action.Code
			idempotent bool
			want       int
		}{{action.NetworkError, true, 3}, {action.NetworkError, false, 1}, {action.Failed, true, 1}, {action.NotFound, true, 1}} {
			attempts := 0
			r := action.New(action.Options{Retry: quick()})
			a := weather
			a.Idempotent = test.idempotent
			register(t, r, a, func(context.Context, json.RawMessage, action.Context) (json.RawMessage, error) {
				attempts++
				return nil, action.Errorf(test.code, "no")
			})
			if _, err := r.Execute(t.Context(), "get-weather", paris, yes); err != nil || attempts != test.want {
				t.Errorf("%s, idempotent %v: %d attempts, %v", test.code, test.idempotent, attempts, err)
			}
		}
	})
}

// advised checks that an action is accepted with a remark.
func advised(t *testing.T, a action.Action, want string) {
	t.Helper()
	if err := action.Check(a); err != nil {
		t.Error(err)
	}
	if all := strings.Join(a.Advice(), "\n"); !strings.Contains(all, want) {
		t.Errorf("no advice about %q: %q", want, all)
	}
	if good := weatherAction(t); len(good.Advice()) > 0 {
		t.Errorf("advice about the guide's own example: %q", good.Advice())
	}
}
