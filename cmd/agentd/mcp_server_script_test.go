package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpServer is an MCP server for scripts: mcpserver <folder>. The folder has the description
// of its tool, and gets the id of its process, where it may be written.
func mcpServer() {
	description, err := os.ReadFile(filepath.Join(os.Args[1], "description"))
	if err != nil {
		os.Stderr.WriteString("no description: " + err.Error() + "\n")
		os.Exit(1)
	}
	_ = os.WriteFile(filepath.Join(os.Args[1], "data", "pid"), []byte(strconv.Itoa(os.Getpid())), 0o600)
	_ = os.WriteFile(filepath.Join(os.Args[1], "outside"), nil, 0o600) // which it may not
	s := mcp.NewServer(&mcp.Implementation{Name: "weather", Version: "1.0"}, nil)
	s.AddTool(&mcp.Tool{
		Name: "forecast", Description: string(description),
		InputSchema:  json.RawMessage(`{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "dependentRequired": {"day": ["city"]}}`),
		OutputSchema: json.RawMessage(`{"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}`),
	}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var args struct{ City string }
		if err := json.Unmarshal(r.Params.Arguments, &args); err != nil {
			return nil, err
		}
		structured := map[string]string{
			"Ulm": `{"id": 9007199254740993}`, "Bonn": `{"id": "none"}`, "env": strconv.Quote(os.Getenv("WEATHER_KEY") + os.Getenv("HIDDEN")),
		}[args.City]
		if args.City == "env" {
			structured = `{"id": 1, "env": ` + structured + `}`
		}
		if structured == "" {
			return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "no such city"}}}, nil
		}
		return &mcp.CallToolResult{StructuredContent: json.RawMessage(structured), Content: []mcp.Content{}}, nil
	})
	_ = s.Run(context.Background(), &mcp.StdioTransport{})
}
