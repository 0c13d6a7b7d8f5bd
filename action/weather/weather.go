package weather

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/netguard"
)

// Definition is the action: its parameters, what it returns and what it needs.
const Definition = `{
  "id": "get-weather",
  "name": "Get Weather",
  "description": "Fetch current weather for a location",
  "parameters": {
    "type": "object",
    "properties": {
      "location": {"type": "string", "minLength": 1, "maxLength": 200, "description": "City name or coordinates"},
      "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"}
    },
    "required": ["location"],
    "additionalProperties": false
  },
  "returns": {
    "type": "object",
    "properties": {
      "temperature": {"type": "number"},
      "condition": {"type": "string"},
      "humidity": {"type": "number"}
    },
    "required": ["temperature"],
    "additionalProperties": false
  },
  "permissions": ["weather:read"],
  "idempotent": true,
  "rateLimit": {"requests": 100, "window": "1h"}
}`

// maxCondition bounds the text that the service describes the weather with.
const maxCondition = 500

// A Config is what the agent's files say about the action. Hosts may be left out: the
// host of the endpoint is then the only one.
type Config struct {
	netguard.Config
	// Endpoint is the URL of the service, with {location}, {unit} and {key} in its query.
	Endpoint string `json:"endpoint"`
	// Key is a reference to the secret that {key} stands for.
	Key string `json:"key,omitempty"`
	// Units are the service's words for celsius and fahrenheit, if it has others.
	Units map[string]string `json:"units,omitempty"`
	// Fields are JSON pointers (RFC 6901) to what the answer has of the result. Those of
	// the result's own names if empty.
	Fields struct {
		Temperature string `json:"temperature,omitempty"`
		Condition   string `json:"condition,omitempty"`
		Humidity    string `json:"humidity,omitempty"`
	} `json:"fields,omitzero"`
	// Secret resolves a reference to a secret.
	Secret func(ref string) (string, error) `json:"-"`
}

// A Handler runs the action. It is safe for concurrent use.
type Handler struct {
	config Config
	key    string
	client *netguard.Client
}

// New returns a handler. It is an error if the endpoint is no URL of the form above, or
// a reference leads nowhere.
func New(c Config) (*Handler, error) {
	h, err := create(c)
	if err != nil {
		return nil, fmt.Errorf("get-weather: %w", err)
	}
	return h, nil
}

func create(c Config) (*Handler, error) {
	endpoint, err := url.Parse(c.Endpoint)
	if err != nil || endpoint.Host == "" {
		return nil, errors.New("endpoint: it is no URL")
	}
	// In a path, a location such as ".." would lead to another part of the service.
	if !strings.Contains(endpoint.RawQuery, "{location}") || strings.Contains(endpoint.Host+endpoint.Path, "{") {
		return nil, errors.New("endpoint: {location} stands in its query, as in https://api.example.com/now?q={location}&units={unit}")
	}
	if len(c.Hosts) == 0 {
		c.Hosts = []string{endpoint.Host}
	}
	if len(c.ContentTypes) == 0 {
		c.ContentTypes = []string{"application/json", "application/*+json"}
	}
	policy, err := c.Policy(c.Secret)
	if err != nil {
		return nil, err
	}
	h := &Handler{config: c}
	if c.Key != "" {
		if c.Secret == nil {
			return nil, errors.New("key: there is nothing here to resolve references with")
		}
		if h.key, err = c.Secret(c.Key); err != nil {
			return nil, fmt.Errorf("key: %w", err)
		}
		if endpoint.Scheme != "https" {
			return nil, errors.New("key: it is sent by https only")
		}
		policy.Secrets = append(policy.Secrets, h.key)
	}
	h.config.Fields.Temperature = cmp.Or(c.Fields.Temperature, "/temperature")
	h.config.Fields.Condition = cmp.Or(c.Fields.Condition, "/condition")
	h.config.Fields.Humidity = cmp.Or(c.Fields.Humidity, "/humidity")
	h.client, err = netguard.New(policy)
	return h, err
}

// Close closes the connections that are kept for later requests.
func (h *Handler) Close() error {
	h.client.Close()
	return nil
}

// Execute asks the service. Errors are [failure.Error].
func (h *Handler) Execute(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	p := struct {
		Location string `json:"location"`
		Unit     string `json:"unit"`
	}{Unit: "celsius"}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, failure.Errorf(failure.InvalidArgument, "the parameters are not those of get-weather").Because(err)
	}
	if p.Location == "" || p.Unit != "celsius" && p.Unit != "fahrenheit" {
		return nil, failure.Errorf(failure.InvalidArgument, "location is a place, and unit celsius or fahrenheit")
	}
	// One pass: what stands in for one of them is not searched for the others.
	target := strings.NewReplacer(
		"{location}", url.QueryEscape(p.Location),
		"{unit}", url.QueryEscape(cmp.Or(h.config.Units[p.Unit], p.Unit)),
		"{key}", url.QueryEscape(h.key),
	).Replace(h.config.Endpoint)
	resp, err := h.client.Do(ctx, netguard.Request{Method: http.MethodGet, URL: target, Header: map[string]string{"Accept": "application/json"}})
	if err != nil {
		return nil, err
	}
	switch {
	case resp.Status == http.StatusNotFound:
		return nil, failure.Errorf(failure.NotFound, "the weather service does not know the location")
	case resp.Status == http.StatusTooManyRequests || resp.Status >= 500:
		return nil, failure.Errorf(failure.Unavailable, "the weather service cannot answer now (status %d)", resp.Status)
	case resp.Status != http.StatusOK:
		return nil, failure.Errorf(failure.Unavailable, "the weather service refuses the request (status %d)", resp.Status)
	}
	return h.result(resp.Result().Body)
}

// result takes the three members of the result out of the service's answer.
func (h *Handler) result(body json.RawMessage) (json.RawMessage, error) {
	fields := h.config.Fields
	var result struct {
		Temperature json.Number  `json:"temperature"`
		Condition   string       `json:"condition,omitempty"`
		Humidity    *json.Number `json:"humidity,omitempty"`
	}
	temperature, ok := number(body, fields.Temperature)
	if !ok {
		return nil, failure.Errorf(failure.Unavailable, "the answer of the weather service has no temperature where this agent is configured to look")
	}
	result.Temperature = temperature
	var condition string
	if json.Unmarshal(at(body, fields.Condition), &condition) == nil && len(condition) <= maxCondition {
		result.Condition = condition
	}
	if humidity, ok := number(body, fields.Humidity); ok {
		result.Humidity = &humidity
	}
	return json.Marshal(result)
}

// number returns the number that a pointer leads to, in the service's digits.
func number(body json.RawMessage, pointer string) (n json.Number, ok bool) {
	value := at(body, pointer)
	if len(value) == 0 || value[0] == '"' {
		return "", false // json.Number also takes numbers in quotes
	}
	return n, json.Unmarshal(value, &n) == nil && n != ""
}

// at returns the value that a JSON pointer leads to, or nil.
func at(value json.RawMessage, pointer string) json.RawMessage {
	tokens := strings.Split(pointer, "/")
	for _, token := range tokens[1:] {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		var members map[string]json.RawMessage
		if json.Unmarshal(value, &members) == nil {
			value = members[token]
			continue
		}
		var items []json.RawMessage
		i, err := strconv.ParseUint(token, 10, 31)
		if json.Unmarshal(value, &items) != nil || err != nil || i >= uint64(len(items)) {
			return nil
		}
		value = items[i]
	}
	return value
}
