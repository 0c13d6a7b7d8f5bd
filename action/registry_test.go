package action_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/action"
	"github.com/agentd/agentd/capability"
)

var errDisk = errors.New("open /srv/secret/db: input/output error")

func logTo() (*slog.Logger, *bytes.Buffer) {
	var b bytes.Buffer
	return slog.New(slog.NewTextHandler(&b, nil)), &b
}

// quick retries without waiting long.
func quick() *capability.RetryPolicy {
	return &capability.RetryPolicy{MaxAttempts: 3, BackoffMultiplier: 1, InitialDelay: time.Microsecond, MaxDelay: time.Microsecond}
}

func TestParse(t *testing.T) {
	a := weatherAction(t)
	if a.RateLimit.Requests != 100 || a.RateLimit.Window != time.Hour || a.Name != "Get Weather" || !slices.Equal(a.Permissions, []string{"weather:read"}) {
		t.Errorf("%+v", a)
	}
	data, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	back, err := action.Parse(data)
	if err != nil || *back.RateLimit != *a.RateLimit || string(back.Parameters) == "" {
		t.Errorf("%s reads back as %+v, %v", data, back, err)
	}
	for _, bad := range []string{``, `[]`, `{} {}`, `{"ide":"x"}`, `{"rateLimit":{"requests":1,"window":"soon"}}`, `{"rateLimit":{"requests":0,"window":"1s"}}`,
		`{"rateLimit":{"requests":1,"window":"-1s"}}`, `{"rateLimit":{"requests":1,"window":"1s","x":1}}`, `{"rateLimit":{"requests":1,"window":"1s","burst":-1}}`} {
		if _, err := action.Parse([]byte(bad)); err == nil {
			t.Errorf("%s is an action", bad)
		}
	}
}

func TestRegisterRefuses(t *testing.T) {
	r := action.New(action.Options{})
	register(t, r, weatherAction(t), handleGetWeather)
	for want, change := range map[string]func(a *action.Action){
		"the id is taken":    func(*action.Action) {},
		"URL-safe":           func(a *action.Action) { a.ID = "a/b" },
		"at most":            func(a *action.Action) { a.ID = strings.Repeat("a", 200) },
		"at least one":       func(a *action.Action) { a.ID, a.RateLimit = "x", &action.RateLimit{Window: time.Hour} },
		"returns":            func(a *action.Action) { a.ID, a.Returns = "x", json.RawMessage(`{"type":"objet"}`) },
		"<domain>:<verb>":    func(a *action.Action) { a.ID, a.Permissions = "x", []string{"all"} },
		"the type of the ro": func(a *action.Action) { a.ID, a.Parameters = "x", json.RawMessage(`{"type":"array"}`) },
	} {
		a := weatherAction(t)
		change(&a)
		if err := r.Register(a, handleGetWeather); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), a.ID) {
			t.Errorf("%s: %v", want, err)
		}
	}
	a := weatherAction(t)
	a.ID = "other"
	if err := r.Register(a, nil); err == nil {
		t.Error("an action without a handler is registered")
	}
}

func TestListAndGet(t *testing.T) {
	r := action.New(action.Options{})
	for id, permissions := range map[string][]string{"b": {"http:read"}} {
		a := weatherAction(t)
		a.ID, a.Permissions = id, permissions
		register(t, r, a, handleGetWeather)
	}
	register(t, r, weatherAction(t), handleGetWeather)
	both := weatherAction(t)
	both.ID, both.Permissions = "a", []string{"http:read", "file:read"}
	register(t, r, both, handleGetWeather)
	for want, filter := range map[string][]string{
		"b get-weather a": nil, "b a": {"http:read"}, "get-weather a": {"file:read", "weather:read"}, "": {"weather:*"},
	} {
		var ids []string
		for _, a := range r.List(action.Filter{Permissions: filter}) {
			ids = append(ids, a.ID)
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("%v: %s, want %s", filter, got, want)
		}
	}
	if a, ok := r.Get("get-weather"); !ok || a.Name != "Get Weather" {
		t.Error(a, ok)
	}
	if _, ok := r.Get("Get Weather"); ok {
		t.Error("Get takes a name")
	}
}

// A check that would come later is not made: what it would say is not for a caller that
// an earlier one refuses, and a refused call uses up no limit.
func TestOrderOfChecks(t *testing.T) {
	r := action.New(action.Options{})
	a := weatherAction(t)
	a.RateLimit = &action.RateLimit{Requests: 1, Window: time.Hour}
	register(t, r, a, handleGetWeather)
	bad := json.RawMessage(`{}`)
	for i, step := range []struct {
		id     string
		c      action.Context
		params json.RawMessage
		want   action.Code
	}{
		{"none", caller(), bad, action.NotFound},
		{"get-weather", caller(), bad, action.PermissionDenied},
		{"get-weather", caller("weather:read"), bad, action.InvalidArguments},
		{"get-weather", caller("weather:read"), paris, ""},
		{"get-weather", caller("weather:read"), paris, action.RateLimitExceeded},
		{"get-weather", caller("weather:read"), bad, action.InvalidArguments},
		{"get-weather", caller(), paris, action.PermissionDenied},
	} {
		result, err := r.Execute(t.Context(), step.id, step.params, step.c)
		switch {
		case step.want == "":
			if err != nil || !result.Success {
				t.Errorf("step %d: %+v, %v", i, result, err)
			}
		case err == nil || action.As(err).Code != step.want || result.Error != action.As(err) || result.Success:
			t.Errorf("step %d: %+v, %v, want %s", i, result, err, step.want)
		}
	}
}

func TestResultJSON(t *testing.T) {
	for want, r := range map[string]action.Result{
		`{"success":true,"data":{"a":1}}`: {Success: true, Data: json.RawMessage(`{"a":1}`)},
		`{"success":false,"error":"no"}`:  {Error: action.Errorf(action.Failed, "no")},
		`{"success":false,"error":""}`:    {},
	} {
		if got, err := json.Marshal(r); err != nil || string(got) != want {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
}

// The invocation and the results of the ARAL standard, by its own JSON.
func TestInvoke(t *testing.T) {
	const asked = `{ "capability_id": "web_search", "parameters": { "query": "ARAL specification", "max_results": 10 }, "trace_id": "uuid", "timeout_ms": 30000}`
	inv, err := action.ParseInvocation([]byte(asked))
	if err != nil {
		t.Fatal(err)
	}
	search := action.Action{
		ID: "b52fee04", Name: "web_search", Description: "Search the web for information", Permissions: []string{"network:read"},
		Parameters: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","minLength":1},"max_results":{"type":"integer","minimum":1,"maximum":20}},"required":["query"]}`),
		Cost:       map[string]float64{"compute": 0.001, "network": 0.0005},
	}
	answer := `{"results":[{"title":"ARAL Standard Documentation","url":"https://aral-standard.org"}]}`
	synctest.Test(t, func(t *testing.T) {
		var trace string
		r := action.New(action.Options{Record: func(_ context.Context, e action.Execution) { trace = e.TraceID }})
		register(t, r, search, func(ctx context.Context, _ json.RawMessage, _ action.Context) (json.RawMessage, error) {
			time.Sleep(1234 * time.Millisecond)
			return json.RawMessage(answer), nil
		})
		user := action.Context{User: action.User{ID: "u", Permissions: []string{"network:read"}}}
		for _, id := range []string{"web_search", "b52fee04"} {
			inv.CapabilityID = id
			got, err := json.Marshal(r.Invoke(t.Context(), inv, user))
			want := `{"success":true,"result":` + answer + `,"execution_time_ms":1234,"cost_estimate":{"compute":0.001,"network":0.0005}}`
			if err != nil || string(got) != want || trace != "uuid" {
				t.Errorf("%s: %s, %v, trace %q", id, got, err, trace)
			}
		}
		slow := search
		slow.ID, slow.Name, slow.Cost = "slow", "Slow", nil
		slow.TimeoutMS = 60_000
		register(t, r, slow, func(ctx context.Context, _ json.RawMessage, _ action.Context) (json.RawMessage, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		inv.CapabilityID = "slow"
		got, _ := json.Marshal(r.Invoke(t.Context(), inv, user))
		if want := `{"success":false,"error":{"code":"timeout","message":"Request exceeded timeout of 30000ms","retryable":true},"execution_time_ms":30000}`; string(got) != want {
			t.Errorf("%s, want %s", got, want)
		}
		// Without the caller's, the action's own limit holds.
		inv.TimeoutMS = 0
		if out := r.Invoke(t.Context(), inv, user); out.Error == nil || out.Error.Code != action.Timeout || out.ExecutionTimeMS != 60_000 {
			t.Errorf("%+v", out)
		}
	})
}

func TestRateLimitBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := action.New(action.Options{})
		a := weatherAction(t)
		register(t, r, a, handleGetWeather)
		user := caller("weather:read")
		for range 100 {
			if _, err := r.Execute(t.Context(), "get-weather", paris, user); err != nil {
				t.Fatal(err)
			}
		}
		out := r.Invoke(t.Context(), action.Invocation{CapabilityID: "get-weather", Parameters: paris}, user)
		body, err := json.Marshal(out.Error.Details)
		// In a bubble the clock stands still: one of a hundred an hour comes back every 36 s.
		want := `{"error":"rate_limit_exceeded","message":"Too many requests","retry_after_seconds":36,"limit":100,"remaining":0,"reset_at":"2000-01-01T01:00:00Z"}`
		if err != nil || string(body) != want || !out.Error.Retryable {
			t.Errorf("%s, %v, want %s", body, err, want)
		}
		time.Sleep(36 * time.Second)
		if _, err := r.Execute(t.Context(), "get-weather", paris, user); err != nil {
			t.Errorf("after retry_after_seconds: %v", err)
		}
	})
}

// A burst is what may come at once, whatever the window allows in the long run.
func TestBurst(t *testing.T) {
	limit := &capability.RateLimit{Requests: 1, Period: time.Hour, Burst: 3}
	a := action.FromCapability(&capability.Capability{
		Name: "get-weather", Permissions: []string{}, RateLimit: limit,
		Input: &capability.Contract{Source: weatherAction(t).Parameters},
	})
	r := action.New(action.Options{})
	register(t, r, a, handleGetWeather)
	for range 3 {
		if _, err := r.Execute(t.Context(), "get-weather", paris, caller()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Execute(t.Context(), "get-weather", paris, caller()); action.As(err).Code != action.RateLimitExceeded {
		t.Errorf("the fourth: %v", err)
	}
	data, err := json.Marshal(a.RateLimit)
	if want := `{"requests":1,"window":"1h0m0s","burst":3}`; err != nil || string(data) != want || *a.RateLimit.Bucket() != *limit {
		t.Errorf("%s, %v, want %s", data, err, want)
	}
}

func TestInvocationIsChecked(t *testing.T) {
	for _, bad := range []string{``, `{}`, `{"capability_id":""}`, `{"capability_id":"x","timeout_ms":-1}`, `{"capability_id":"x","parametres":{}}`,
		`{"capability_id":"x","trace_id":"` + strings.Repeat("t", 200) + `"}`, `{"capability_id":"x"}{}`, `{"capability_id":"x"}}`, `{"capability_id":"x"}]`} {
		if _, err := action.ParseInvocation([]byte(bad)); err == nil {
			t.Errorf("%s is an invocation", bad)
		}
	}
	r := action.New(action.Options{})
	if out := r.Invoke(t.Context(), action.Invocation{}, caller()); out.Success || out.Error.Code != action.InvalidArguments {
		t.Errorf("%+v", out)
	}
}

// What the caller ends is no failure of the action.
func TestCanceled(t *testing.T) {
	r := action.New(action.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	register(t, r, weatherAction(t), func(ctx context.Context, _ json.RawMessage, _ action.Context) (json.RawMessage, error) {
		cancel()
		<-ctx.Done()
		return nil, errDisk
	})
	result, err := r.Execute(ctx, "get-weather", paris, caller("weather:read"))
	if err != nil || result.Error == nil || result.Error.Code != action.Canceled {
		t.Errorf("%+v, %v", result, err)
	}
}
