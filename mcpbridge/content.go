package mcpbridge

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// passThrough makes a result of an answer that is one: {content, structuredContent?,
// isError?, _meta?}. Every block and the structured content go out as they came, kinds
// and members that the library does not know included. Of the metadata, what has a key of
// agentd's own is left out: programs take it for what this agent says of the call.
func passThrough(response json.RawMessage) (*mcp.CallToolResult, error) {
	var answer struct {
		Content    []json.RawMessage          `json:"content"`
		Structured json.RawMessage            `json:"structuredContent"`
		IsError    bool                       `json:"isError"`
		Meta       map[string]json.RawMessage `json:"_meta"`
	}
	if err := json.Unmarshal(response, &answer); err != nil {
		return nil, errors.New("its members have other types")
	}
	if answer.Content == nil {
		return nil, errors.New("it has no content")
	}
	out := &mcp.CallToolResult{IsError: answer.IsError, Content: make([]mcp.Content, len(answer.Content))}
	for i, raw := range answer.Content {
		var block struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(raw, &block) != nil || block.Type == "" {
			return nil, fmt.Errorf("its block %d has no type", i)
		}
		out.Content[i] = rawContent{raw: raw}
	}
	// Not assigned where it is absent: a nil RawMessage in an interface is no nil.
	if answer.Structured != nil {
		out.StructuredContent = answer.Structured
	}
	for key, value := range answer.Meta {
		if strings.HasPrefix(key, metaPrefix) {
			continue
		}
		if out.Meta == nil {
			out.Meta = mcp.Meta{}
		}
		out.Meta[key] = value
	}
	return out, nil
}

// rawContent is a block of content as somebody else wrote it. The embedded kind is never
// set: it is there because only the library's own kinds are contents.
type rawContent struct {
	*mcp.TextContent
	raw json.RawMessage
}

// MarshalJSON implements [mcp.Content].
func (c rawContent) MarshalJSON() ([]byte, error) { return c.raw, nil }
