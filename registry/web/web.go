package web

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/netguard"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/internal/toolerror"
)

// maxBytes bounds a body where the configuration does not: a result of a tool has at
// most 1 MiB by default, with the headers and what JSON adds.
const maxBytes = 512 << 10

// A Resolver makes the capability http.
type Resolver struct{}

// A Config is what the agent's file says about the capability.
type Config struct {
	netguard.Config
	// Post gives the tool http_post too.
	Post bool `json:"post,omitempty"`
}

// Key implements [registry.Resolver].
func (Resolver) Key() string { return "http" }

// Tools implements [registry.Resolver].
func (Resolver) Tools() []registry.Tool {
	return []registry.Tool{
		{Key: "http_get", Name: "HTTP GET", Description: "Fetches a URL of a host that this agent may reach. JSON comes parsed, everything else as text."},
		{Key: "http_post", Name: "HTTP POST", Description: "Sends a body to a URL of a host that this agent may reach. A text is sent as text, everything else as JSON."},
	}
}

// ConfigSchema implements [registry.Resolver].
func (Resolver) ConfigSchema() json.RawMessage {
	return json.RawMessage(strings.Replace(netguard.ConfigSchema, `"properties": {`, `"properties": {"post": {"type": "boolean"},`, 1))
}

const getInput = `{
  "type": "object",
  "properties": {
    "url": {"type": "string", "minLength": 1, "maxLength": 8192, "description": "http or https"},
    "headers": {"type": "object", "additionalProperties": {"type": "string"}, "description": "left behind when an answer redirects to another host"}
  },
  "required": ["url"],
  "additionalProperties": false
}`

const postInput = `{
  "type": "object",
  "properties": {
    "url": {"type": "string", "minLength": 1, "maxLength": 8192, "description": "http or https"},
    "headers": {"type": "object", "additionalProperties": {"type": "string"}, "description": "left behind when an answer redirects to another host"},
    "body": {"description": "a text is sent as it is, with the type text/plain unless the headers name another; everything else is sent as JSON"}
  },
  "required": ["url", "body"],
  "additionalProperties": false
}`

// Resolve implements [registry.Resolver].
func (r Resolver) Resolve(ctx registry.Context, c registry.Config) (*registry.Server, error) {
	var config Config
	if err := json.Unmarshal(c.JSON, &config); err != nil {
		return nil, err
	}
	policy, err := config.Policy(toolerror.Secret(ctx))
	if err != nil {
		return nil, &registry.ConfigError{Message: err.Error()}
	}
	if policy.MaxBodyBytes == 0 {
		policy.MaxBodyBytes = maxBytes
	}
	if len(policy.ContentTypes) == 0 {
		policy.ContentTypes = netguard.TextTypes()
	}
	client, err := netguard.New(policy)
	if err != nil {
		return nil, &registry.ConfigError{Message: err.Error()}
	}
	s := registry.NewServer(r.Key(), "1", c.Tools)
	s.OnClose(func() error { client.Close(); return nil })
	for _, t := range r.Tools() {
		spec := registry.ToolSpec{Key: t.Key, Title: t.Name, Description: t.Description, OpenWorld: true, Output: json.RawMessage(netguard.ResultSchema)}
		method := http.MethodGet
		spec.Input, spec.ReadOnly, spec.Idempotent = json.RawMessage(getInput), true, true
		if t.Key == "http_post" {
			if !config.Post {
				continue
			}
			method = http.MethodPost
			spec.Input, spec.ReadOnly, spec.Idempotent = json.RawMessage(postInput), false, false
		}
		if err := s.Add(spec, toolerror.Handler(ctx.Logger, t.Key, send(client, method))); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// send is the handler of both tools.
func send(client *netguard.Client, method string) registry.Handler {
	return func(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
		var a struct {
			URL     string            `json:"url"`
			Headers map[string]string `json:"headers"`
			Body    json.RawMessage   `json:"body"`
		}
		if err := json.Unmarshal(args, &a); err != nil {
			return nil, failure.Errorf(failure.InvalidArgument, "the arguments are not those of the tool").Because(err)
		}
		request := netguard.Request{Method: method, URL: a.URL, Header: a.Headers}
		if method == http.MethodPost {
			request.Header, request.Body = withType(a.Headers, a.Body)
		}
		resp, err := client.Do(ctx, request)
		if err != nil {
			return nil, err
		}
		return json.Marshal(resp.Result())
	}
}

// withType returns the body to send, and the headers with its type unless they name one.
func withType(headers map[string]string, body json.RawMessage) (map[string]string, []byte) {
	contentType := "application/json"
	var text string
	if json.Unmarshal(body, &text) == nil && string(body) != "null" {
		contentType, body = "text/plain; charset=utf-8", []byte(text)
	}
	all := map[string]string{"Content-Type": contentType}
	for name, value := range headers {
		if strings.EqualFold(name, "Content-Type") {
			delete(all, "Content-Type")
		}
		all[name] = value
	}
	return all, body
}
