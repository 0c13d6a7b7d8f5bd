package weather_test

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/action"
	"github.com/agentd/agentd/action/weather"
	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/schema"
)

const key = "weather-s3cret-key"

// service starts a weather service that answers with status and body, and returns the
// configuration of an action that asks it; query is that of the last request.
func service(t *testing.T, status int, body string) (c weather.Config, query *url.Values) {
	t.Helper()
	query = &url.Values{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*query = r.URL.Query()
		if r.URL.Path != "/now" {
			t.Errorf("the path is %s", r.URL.Path)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	c.AllowAddresses, c.CAFile = []string{"127.0.0.1/32"}, ca
	c.Endpoint = server.URL + "/now?q={location}&units={unit}&appid={key}"
	c.Key = "env:WEATHER_KEY"
	c.Secret = func(ref string) (string, error) {
		if ref != "env:WEATHER_KEY" {
			return "", errors.New("not set")
		}
		return key, nil
	}
	return c, query
}

func run(t *testing.T, c weather.Config, params string) (string, error) {
	t.Helper()
	h, err := weather.New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	result, err := h.Execute(t.Context(), json.RawMessage(params))
	return string(result), err
}

func TestWeather(t *testing.T) {
	c, query := service(t, 200, `{"main": {"temp": 12.50, "humidity": 81}, "weather": [{"description": "light rain"}]}`)
	c.Units = map[string]string{"celsius": "metric"}
	c.Fields.Temperature, c.Fields.Humidity, c.Fields.Condition = "/main/temp", "/main/humidity", "/weather/0/description"
	got, err := run(t, c, `{"location": "São Paulo & Rio?units=x#{key}"}`)
	if err != nil || got != `{"temperature":12.50,"condition":"light rain","humidity":81}` {
		t.Errorf("%s, %v", got, err)
	}
	if q := *query; q.Get("q") != "São Paulo & Rio?units=x#{key}" || q.Get("units") != "metric" || q.Get("appid") != key || len(q) != 3 {
		t.Errorf("the service was asked %v", q)
	}
	if _, err := run(t, c, `{"location": "Oslo", "unit": "fahrenheit"}`); err != nil || query.Get("units") != "fahrenheit" {
		t.Errorf("%v, %v", query, err)
	}
}

// The result has the same members with the same types whatever the service sends.
func TestAnswers(t *testing.T) {
	var definition struct {
		Parameters, Returns json.RawMessage
		Permissions         []string
	}
	if err := json.Unmarshal([]byte(weather.Definition), &definition); err != nil {
		t.Fatal(err)
	}
	returns, err := schema.Compile(definition.Returns)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := schema.Compile(definition.Parameters); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		status int
		body   string
		want   string // a result, or a code
	}{
		{200, `{"temperature": -3, "condition": "snow", "humidity": 90.5}`, `{"temperature":-3,"condition":"snow","humidity":90.5}`},
		{200, `{"temperature": 1e2}`, `{"temperature":1e2}`},
		{200, `{"temperature": 1, "condition": 7, "humidity": "wet"}`, `{"temperature":1}`},
		{200, `{"temperature": 1, "condition": "` + strings.Repeat("x", 501) + `"}`, `{"temperature":1}`},
		{200, `{"temperature": 1, "condition": "for ` + key + `"}`, `{"temperature":1,"condition":"for [redacted]"}`},
		{200, `{"temperature": "12"}`, "unavailable"},
		{200, `{"temperature": null}`, "unavailable"},
		{200, `{"temperature": {}}`, "unavailable"},
		{200, `{"temperature": 1, "temperature": 2}`, "unavailable"},
		{200, `[]`, "unavailable"},
		{200, `not JSON`, "unavailable"},
		{200, ``, "unavailable"},
		{404, `{}`, "not_found"},
		{429, `{}`, "unavailable"},
		{500, `{"stack": "` + key + `"}`, "unavailable"},
		{401, `{}`, "unavailable"},
	} {
		config, _ := service(t, c.status, c.body)
		got, err := run(t, config, `{"location": "Paris"}`)
		if err != nil {
			if strings.Contains(err.Error(), key) || failure.As(err) == nil {
				t.Fatalf("%d %s: %v", c.status, c.body, err)
			}
			got = string(failure.As(err).Code)
		} else if v := returns.Validate([]byte(got)); len(v) > 0 {
			t.Errorf("%s fails the definition: %v", got, v)
		}
		if got != c.want {
			t.Errorf("%d %s: got %s, want %s", c.status, c.body, got, c.want)
		}
	}
}

// The definition is one that package action takes.
func TestDefinition(t *testing.T) {
	a, err := action.Parse([]byte(weather.Definition))
	if err == nil {
		err = action.Check(a)
	}
	if err != nil || !a.Idempotent || a.Returns == nil {
		t.Errorf("%s: %v", a.ID, err)
	}
}

func TestRefused(t *testing.T) {
	good, _ := service(t, 200, `{"temperature": 1}`)
	for _, params := range []string{`{}`, `{"location": ""}`, `{"location": "a", "unit": "kelvin"}`, `{"location": 1}`, `x`} {
		if _, err := run(t, good, params); failure.As(err) == nil || failure.As(err).Code != failure.InvalidArgument {
			t.Errorf("%s: %v", params, err)
		}
	}
	for want, change := range map[string]func(*weather.Config){
		"it is no URL": func(c *weather.Config) { c.Endpoint = "" },
		"in its query": func(c *weather.Config) { c.Endpoint = "https://a.test/{location}?x=1" },
		"https only":   func(c *weather.Config) { c.Endpoint = "http://a.test/?q={location}&k={key}" },
		"not set":      func(c *weather.Config) { c.Key = "env:OTHER" },
		"resolve":      func(c *weather.Config) { c.Secret = nil },
	} {
		bad := good
		change(&bad)
		if _, err := weather.New(bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// The action reaches its service and no other host.
func TestRedirectElsewhere(t *testing.T) {
	c, _ := service(t, 200, "")
	server := httptest.NewTLSServer(http.RedirectHandler("https://evil.test/", http.StatusFound))
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	c.CAFile, c.Endpoint = ca, server.URL+"/?q={location}&k={key}"
	if _, err := run(t, c, `{"location": "Paris"}`); failure.As(err) == nil || failure.As(err).Code != failure.NotAllowed {
		t.Error(err)
	}
}
