package mcphttp_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The conformance suite calls tools, resources and prompts of fixed names. This is a server that
// has them all, so that what fails is the handler's doing.

const (
	anyObject = `{"type":"object"}`
	onePixel  = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
	silence   = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
	rich      = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
		"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
		"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},
		"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],
		"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},"else":{"required":["email"]},"additionalProperties":false}`
)

func decoded(text string) []byte {
	data, _ := base64.StdEncoding.DecodeString(text)
	return data
}

func embedded(uri string) *mcp.EmbeddedResource {
	return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: uri, MIMEType: "text/plain", Text: "an embedded resource"}}
}

func everything() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "everything", Version: "1"}, &mcp.ServerOptions{
		CompletionHandler: func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{}}}, nil
		},
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	addContentTools(s)
	addTalkingTools(s)
	addChangingTools(s)
	addAskingTools(s)
	addResources(s)
	addPrompts(s)
	return s
}

func addTool(s *mcp.Server, name, schema string, h mcp.ToolHandler) {
	s.AddTool(&mcp.Tool{Name: name, Description: "for the conformance suite", InputSchema: json.RawMessage(schema)}, h)
}

func addContentTools(s *mcp.Server) {
	image := &mcp.ImageContent{Data: decoded(onePixel), MIMEType: "image/png"}
	for name, result := range map[string]*mcp.CallToolResult{
		"test_simple_text":            text("This is a simple text response for testing."),
		"test_image_content":          {Content: []mcp.Content{image}},
		"test_audio_content":          {Content: []mcp.Content{&mcp.AudioContent{Data: decoded(silence), MIMEType: "audio/wav"}}},
		"test_embedded_resource":      {Content: []mcp.Content{embedded("test://embedded-resource")}},
		"test_multiple_content_types": {Content: []mcp.Content{&mcp.TextContent{Text: "text"}, image, embedded("test://embedded-in-multiple")}},
		"test_error_handling":         {IsError: true, Content: text("this tool intentionally fails").Content},
		"test_streaming_elicitation":  text("nothing but a result"),
	} {
		addTool(s, name, anyObject, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return result, nil })
	}
	echo := func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text(string(req.Params.Arguments)), nil
	}
	addTool(s, "json_schema_2020_12_tool", rich, echo)
	addTool(s, "test_x_mcp_header", `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"level":{"type":"integer"}}}`, echo)
}

//nolint:staticcheck // the suite calls what is deprecated too
func addTalkingTools(s *mcp.Server) {
	addTool(s, "test_tool_with_logging", anyObject, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for _, line := range []string{"started", "processing", "completed"} {
			if err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: line}); err != nil {
				return nil, err
			}
		}
		return text("logged"), nil
	})
	addTool(s, "test_logging_tool", anyObject, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text("logged, for who has asked for it"), req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: "executed"})
	})
	addTool(s, "test_tool_with_progress", anyObject, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		token := req.Params.GetProgressToken()
		for _, progress := range []float64{0, 50, 100} {
			if err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: progress, Total: 100}); err != nil {
				return nil, err
			}
		}
		return text(fmt.Sprint(token)), nil
	})
	addTool(s, "test_sampling", `{"type":"object","properties":{"prompt":{"type":"string"}}}`, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		result, err := req.Session.CreateMessage(ctx, &mcp.CreateMessageParams{Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "a prompt"}}}, MaxTokens: 100})
		if err != nil {
			return nil, err
		}
		said, _ := result.Content.(*mcp.TextContent)
		return text("LLM response: " + said.Text), nil
	})
	for name, schema := range map[string]string{
		"test_elicitation": `{"type":"object","properties":{"username":{"type":"string","description":"Your preferred username"}},"required":["username"]}`,
		"test_elicitation_sep1034_defaults": `{"type":"object","properties":{"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},
			"score":{"type":"number","default":95.5},"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}}}`,
		"test_elicitation_sep1330_enums": `{"type":"object","properties":{"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
			"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},
			"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},
			"untitledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"type":"string","enum":["option1","option2","option3"]}},
			"titledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"anyOf":[{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}}}`,
	} {
		addTool(s, name, `{"type":"object","properties":{"message":{"type":"string"}}}`, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			result, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Who are you?", RequestedSchema: json.RawMessage(schema)})
			if err != nil {
				return nil, err
			}
			return text(fmt.Sprintf("action=%s, content=%v", result.Action, result.Content)), nil
		})
	}
}

//nolint:staticcheck // the suite calls what is deprecated too
func addChangingTools(s *mcp.Server) {
	addTool(s, "test_trigger_tool_change", anyObject, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		addTool(s, "transient", anyObject, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return text(""), nil })
		return text("changed"), nil
	})
	addTool(s, "test_trigger_prompt_change", anyObject, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.AddPrompt(&mcp.Prompt{Name: "transient", Description: "transient"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{}, nil
		})
		return text("changed"), nil
	})
	addTool(s, "test_missing_capability", anyObject, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if c := req.ClientCapabilities(); c != nil && c.Sampling != nil {
			return text("executed"), nil
		}
		return nil, &jsonrpc.Error{Code: mcp.CodeMissingRequiredClientCapabilities, Message: "sampling is required", Data: json.RawMessage(`{"requiredCapabilities":{"sampling":{}}}`)}
	})
}

func elicit(member, kind string) *mcp.ElicitParams {
	schema := fmt.Sprintf(`{"type":"object","properties":{%q:{"type":%q}},"required":[%q]}`, member, kind, member)
	return &mcp.ElicitParams{Message: "Please give " + member, RequestedSchema: json.RawMessage(schema)}
}

//nolint:staticcheck // the suite calls what is deprecated too
func sample() *mcp.CreateMessageParams {
	return &mcp.CreateMessageParams{Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "What is the capital of France?"}}}, MaxTokens: 100}
}

// accepted returns a member of an accepted answer; nil if there is none.
func accepted(responses mcp.InputResponseMap, key, member string) any {
	if result, ok := responses[key].(*mcp.ElicitResult); ok && result.Action == "accept" {
		return result.Content[member]
	}
	return nil
}

// sealed signs the state of a request, and opened checks it.
func sealed(state string) string {
	mac := hmac.New(sha256.New, []byte("a key of the fixture"))
	mac.Write([]byte(state))
	return state + "." + hex.EncodeToString(mac.Sum(nil))
}

func opened(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	state, _, _ := strings.Cut(text, ".")
	if sealed(state) != text {
		return "", &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "this requestState is not of this server"}
	}
	return state, nil
}

// addAskingTools adds tools that need something of the client before they answer: what they
// need, unless the answers and the state do.
//
//nolint:staticcheck // the suite calls what is deprecated too
func addAskingTools(s *mcp.Server) {
	type asking func(in mcp.InputResponseMap, state string, caps *mcp.ClientCapabilities) (ask mcp.InputRequestMap, next, done string)
	confirm := func(in mcp.InputResponseMap, state string, _ *mcp.ClientCapabilities) (mcp.InputRequestMap, string, string) {
		if state == "asked" && accepted(in, "confirm", "ok") != nil {
			return nil, "", "state-ok"
		}
		return mcp.InputRequestMap{"confirm": elicit("ok", "boolean")}, "asked", ""
	}
	needs := func(state string, want mcp.InputRequestMap) asking {
		return func(in mcp.InputResponseMap, _ string, _ *mcp.ClientCapabilities) (mcp.InputRequestMap, string, string) {
			for key := range want {
				if result, ok := in[key].(*mcp.ElicitResult); in[key] == nil || ok && (result.Action != "accept" || result.Content["name"] == nil) {
					return maps.Clone(want), state, ""
				}
			}
			return nil, "", "given"
		}
	}
	name := elicit("name", "string")
	for tool, ask := range map[string]asking{
		"elicitation":     needs("", mcp.InputRequestMap{"user_name": name}),
		"sampling":        needs("", mcp.InputRequestMap{"capital_question": sample()}),
		"list_roots":      needs("", mcp.InputRequestMap{"client_roots": &mcp.ListRootsParams{}}),
		"multiple_inputs": needs("many", mcp.InputRequestMap{"user_name": name, "greeting": sample(), "client_roots": &mcp.ListRootsParams{}}),
		"request_state":   confirm,
		"tampered_state":  confirm,
		"multi_round": func(_ mcp.InputResponseMap, state string, _ *mcp.ClientCapabilities) (mcp.InputRequestMap, string, string) {
			switch state {
			case "":
				return mcp.InputRequestMap{"step1": name}, "one", ""
			case "one":
				return mcp.InputRequestMap{"step2": elicit("color", "string")}, "two", ""
			}
			return nil, "", "both rounds"
		},
		"capabilities": func(in mcp.InputResponseMap, _ string, caps *mcp.ClientCapabilities) (mcp.InputRequestMap, string, string) {
			ask := mcp.InputRequestMap{}
			if caps.Elicitation != nil {
				ask["user_name"] = name
			}
			if caps.Sampling != nil {
				ask["greeting"] = sample()
			}
			if len(in) > 0 || len(ask) == 0 {
				return nil, "", "given"
			}
			return ask, "", ""
		},
	} {
		addTool(s, "test_input_required_result_"+tool, anyObject, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			state, err := opened(req.Params.RequestState)
			if err != nil {
				return nil, err
			}
			caps := req.ClientCapabilities()
			if caps == nil {
				caps = &mcp.ClientCapabilities{}
			}
			requests, next, done := ask(req.Params.InputResponses, state, caps)
			if done != "" {
				return text(done), nil
			}
			if next != "" {
				next = sealed(next)
			}
			return &mcp.CallToolResult{InputRequests: requests, RequestState: next}, nil
		})
	}
}

func addResources(s *mcp.Server) {
	read := func(c mcp.ResourceContents) mcp.ResourceHandler {
		return func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			out := c
			out.URI = req.Params.URI
			if id, ok := strings.CutPrefix(out.URI, "test://template/"); ok {
				out.Text = fmt.Sprintf(`{"id":%q}`, strings.TrimSuffix(id, "/data"))
			}
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{&out}}, nil
		}
	}
	for name, c := range map[string]mcp.ResourceContents{
		"static-text":      {MIMEType: "text/plain", Text: "a static text"},
		"static-binary":    {MIMEType: "image/png", Blob: decoded(onePixel)},
		"watched-resource": {MIMEType: "text/plain", Text: "watched"},
	} {
		s.AddResource(&mcp.Resource{Name: name, Description: name, MIMEType: c.MIMEType, URI: "test://" + name}, read(c))
	}
	s.AddResourceTemplate(&mcp.ResourceTemplate{Name: "template", Description: "template", MIMEType: "application/json", URITemplate: "test://template/{id}/data"},
		read(mcp.ResourceContents{MIMEType: "application/json"}))
}

func addPrompts(s *mcp.Server) {
	add := func(name string, arguments []*mcp.PromptArgument, content func(map[string]string) mcp.Content) {
		s.AddPrompt(&mcp.Prompt{Name: name, Description: name, Arguments: arguments}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: content(req.Params.Arguments)}}}, nil
		})
	}
	add("test_simple_prompt", nil, func(map[string]string) mcp.Content { return &mcp.TextContent{Text: "simple"} })
	add("test_prompt_with_image", nil, func(map[string]string) mcp.Content {
		return &mcp.ImageContent{Data: decoded(onePixel), MIMEType: "image/png"}
	})
	add("test_prompt_with_arguments", []*mcp.PromptArgument{{Name: "arg1", Required: true}, {Name: "arg2", Required: true}}, func(a map[string]string) mcp.Content {
		return &mcp.TextContent{Text: fmt.Sprintf("arg1='%s', arg2='%s'", a["arg1"], a["arg2"])}
	})
	add("test_prompt_with_embedded_resource", []*mcp.PromptArgument{{Name: "resourceUri", Required: true}}, func(a map[string]string) mcp.Content {
		return embedded(a["resourceUri"])
	})
	s.AddPrompt(&mcp.Prompt{Name: "test_input_required_result_prompt", Description: "asks"}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		if said := accepted(req.Params.InputResponses, "user_context", "context"); said != nil {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: fmt.Sprint(said)}}}}, nil
		}
		return &mcp.GetPromptResult{InputRequests: mcp.InputRequestMap{"user_context": elicit("context", "string")}}, nil
	})
}
