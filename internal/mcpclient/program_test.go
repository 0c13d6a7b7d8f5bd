package mcpclient_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/internal/mcpclient"
	"github.com/agentd/agentd/skill/sandbox"
)

// The test binary is also the servers that the tests run.
func TestMain(m *testing.M) {
	if sandbox.IsHelper(os.Args) {
		os.Exit(sandbox.Main(os.Args))
	}
	if name := os.Getenv("MCP_TEST_SERVER"); name != "" {
		programs()[name]()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const objectSchema = `{"type": "object"}`

// library is a server of the protocol's library, of both eras.
func library() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1.2"}, nil)
	add := func(name, description, annotations string, h mcp.ToolHandler) {
		t := &mcp.Tool{Name: name, Description: description, InputSchema: json.RawMessage(objectSchema)}
		if annotations != "" {
			if err := json.Unmarshal([]byte(annotations), &t.Annotations); err != nil {
				panic(err)
			}
		}
		s.AddTool(t, h)
	}
	echo := func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: r.Params.Arguments, Content: []mcp.Content{&mcp.TextContent{Text: "said"}}}, nil
	}
	add("echo", "Says what it is told.", `{"idempotentHint": true}`, echo)
	add("env", "Shows its environment.", "", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: os.Environ(), Content: []mcp.Content{}}, nil
	})
	add("exit", "Ends the server.", "", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, "out of cheese")
		os.Exit(3)
		return nil, nil
	})
	add("exit-twice", "Ends the server.", `{"idempotentHint": true}`, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		os.Exit(3)
		return nil, nil
	})
	add("hang", "Does not answer.", "", func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	add("progress", "Reports.", "", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1, Total: 2, Message: "half"})
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, err
	})
	add("fails", "Fails.", "", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "no such city"}}}, nil
	})
	add("asks", "Asks for a sample.", "", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var said []string
		_, err := r.Session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 1, Messages: []*mcp.SamplingMessage{}}) //nolint:staticcheck // it must be refused
		said = append(said, fmt.Sprint(err != nil))
		_, err = r.Session.ListRoots(ctx, nil) //nolint:staticcheck // as above
		said = append(said, fmt.Sprint(err != nil))
		_, err = r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "password?"})
		said = append(said, fmt.Sprint(err != nil))
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Join(said, " ")}}}, nil
	})
	add("needs", "Needs an input.", "", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": &mcp.ElicitParams{Message: "password?"}}}, nil
	})
	add("change", "Changes the tool echo.", "", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var args struct{ Description string }
		_ = json.Unmarshal(r.Params.Arguments, &args)
		add("echo", args.Description, `{"idempotentHint": true}`, echo)
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
	})
	failed := func(err error) *mcp.CallToolResult { var r mcp.CallToolResult; r.SetError(err); return &r }
	add("read", "Reads a file.", "", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var args struct{ Path string }
		_ = json.Unmarshal(r.Params.Arguments, &args)
		text, err := os.ReadFile(args.Path)
		if err != nil {
			return failed(err), nil
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}, nil
	})
	add("leave", "Leaves a process in a session of its own.", "", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = []string{"MCP_TEST_SERVER=sleep"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			return failed(err), nil
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strconv.Itoa(cmd.Process.Pid)}}}, nil
	})
	return s
}

func programs() map[string]func() {
	serve := func() { _ = library().Run(context.Background(), &mcp.StdioTransport{}) }
	return map[string]func(){
		"library":     serve,
		"conformance": conformanceClient,
		"greets": func() {
			fmt.Println("Welcome to the server!")
			fmt.Println("")
			serve()
		},
		"old":      func() { raw(rawServer{}) },
		"mute":     func() { raw(rawServer{discover: "mute"}) },
		"dies":     func() { raw(rawServer{discover: "exit"}) },
		"fails":    func() { fmt.Fprintln(os.Stderr, "no database"); os.Exit(7) },
		"silent":   func() { _, _ = io.Copy(io.Discard, os.Stdin) },
		"stubborn": func() { raw(rawServer{stays: true}) },
		"deserter": func() {
			signal.Ignore(syscall.SIGTERM)
			if group, err := syscall.Getpgid(os.Getppid()); err != nil || syscall.Setpgid(0, group) != nil {
				panic("it cannot leave its group")
			}
			raw(rawServer{stays: true})
		},
		"chatter": func() {
			noise := strings.Repeat("z", 20000)
			for range 5000 {
				fmt.Fprintln(os.Stderr, noise)
			}
			serve()
		},
		"nonsense": func() {
			for range 1000 {
				fmt.Println("nonsense")
			}
			time.Sleep(time.Hour)
		},
		"questions": func() { raw(rawServer{call: "questions"}) },
		"answers":   func() { raw(rawServer{}) },
	}
}

// A rawServer speaks the older era by hand.
type rawServer struct {
	discover string // what it does when it is asked for the newer era
	call     string
	stays    bool // does not end with its input
}

func raw(s rawServer) {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<24)
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	say := func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...); out.Flush() }
	for in.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Name      string
				Arguments json.RawMessage
			}
		}
		if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		switch m.Method {
		case "server/discover":
			switch s.discover {
			case "mute":
				for in.Scan() { // it hangs, whatever comes
				}
			case "exit":
				os.Exit(1)
			}
			say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown method"}}`, m.ID)
		case "initialize":
			say(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"0"}}}`, m.ID)
		case "tools/list":
			say(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"t","description":"d","inputSchema":{"type":"object","maxProperties":9007199254740993}}]}}`, m.ID)
		case "tools/call":
			answer(s, say, m.ID, string(m.Params.Arguments))
		}
	}
	if s.stays {
		time.Sleep(time.Hour)
	}
}

// answer answers a call as its arguments ask.
func answer(s rawServer, say func(string, ...any), id json.RawMessage, args string) {
	ok := func(id string) {
		say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[],"structuredContent":{"n":9007199254740993,"f":1.0,"id":%s}}}`, id, id)
	}
	switch {
	case s.call == "questions":
		for i := range 100000 { // and never reads the answers
			say(`{"jsonrpc":"2.0","id":"q%d","method":"sampling/createMessage","params":{}}`, i)
		}
	case strings.Contains(args, "unknown"):
		ok("4711")
		ok(`"nobody"`)
		ok(string(id))
	case strings.Contains(args, "twice"):
		ok(string(id))
		ok(string(id))
	case strings.Contains(args, "garbage"):
		say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":`, id)
		say(`null`)
		say(`[1,2]`)
		ok(string(id))
	case strings.Contains(args, "wrong"):
		say(`{"jsonrpc":"2.0","id":%s,"result":{"content":"text"}}`, id)
	case strings.Contains(args, "double"):
		say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[],"structuredContent":1,"structuredContent":2}}`, id)
	case strings.Contains(args, "error"):
		say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"no such tool"}}`, id)
	case strings.Contains(args, "large"):
		say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}`, id, strings.Repeat("x", 100<<20))
	case strings.Contains(args, "hundred"):
		hundred++
		if hundred == 100 {
			for i := range 50 {
				ok(fmt.Sprint(i + 3)) // some of those that are waiting
			}
			os.Exit(1)
		}
	default:
		ok(string(id))
	}
}

var hundred int

// command is a server that the test binary is.
func command(t *testing.T, name string) mcpclient.Options {
	t.Helper()
	return mcpclient.Options{
		Name: name,
		Command: &mcpclient.Command{
			Args: []string{os.Args[0]},
			// A program built with the race detector would linger for a second.
			Env: func() ([]string, error) {
				return []string{"MCP_TEST_SERVER=" + name, "GORACE=atexit_sleep_ms=0"}, nil
			},
			Grace: 200 * time.Millisecond,
		},
		Limits: mcpclient.Limits{
			Timeout: 30 * time.Second, MinBackoff: 10 * time.Millisecond, MaxBackoff: 100 * time.Millisecond,
			StartTimeout: 30 * time.Second, ProbeTimeout: 20 * time.Second, Pending: 100, RelistPause: time.Millisecond,
		},
		Logger: slog.New(slog.DiscardHandler),
	}
}

// pin pins all that a server serves.
func pin(t *testing.T, o *mcpclient.Options) {
	t.Helper()
	l, err := mcpclient.List(t.Context(), *o)
	if err != nil {
		t.Fatal(err)
	}
	o.Pinned = l.Tools
}

func start(t *testing.T, o mcpclient.Options) *mcpclient.Client {
	t.Helper()
	c, err := mcpclient.New(o)
	if err != nil {
		t.Fatal(err)
	}
	c.Start()
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}
