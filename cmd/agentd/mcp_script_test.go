package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpClient is an MCP client as a program: mcpclient <step>… -- <command of the server>…
// It prints what each step finds. The steps:
//
//	tools                   the names of the tools, in one line
//	call <tool> <json>      the result of a tool, or the error of the protocol
//	await                   the result of the last call, by the handle that it was answered with
//	describe <tool>         its description
//	copy <from> <to>        replaces a file
//	changed                 waits until the list of tools has changed
//	signal                  sends SIGTERM to the server
//	ended                   waits until the server has ended, and prints its exit status
//	raw                     before all others: no client, but lines of JSON from standard input,
//	                        one after another, each with the line of its answer
//
// After the last step it closes the server's standard input, and prints its exit status.
func mcpClient() {
	if err := runMCPClient(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mcpclient:", err)
		os.Exit(1)
	}
}

// mcpPatience bounds what may hang when the server is wrong.
const mcpPatience = time.Minute

// mcpHTTPClient is mcpClient over HTTP: mcphttpclient <url> <step>…, with the bearer token of
// $MCP_TOKEN, if there is one.
func mcpHTTPClient() {
	ctx, cancel := context.WithTimeout(context.Background(), mcpPatience)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "scripted", Version: "1"}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: os.Args[1], HTTPClient: &http.Client{Transport: bearer(os.Getenv("MCP_TOKEN"))}, MaxRetries: -1,
	}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	for steps := os.Args[2:]; err == nil && len(steps) > 0; {
		var taken int
		if taken, err = (&mcpServerProcess{}).step(ctx, session, nil, steps); err == nil {
			steps = steps[taken:]
		}
	}
	if err == nil {
		err = session.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mcphttpclient:", err)
		os.Exit(1)
	}
}

// bearer sends a token with each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+string(b))
	}
	return http.DefaultTransport.RoundTrip(r)
}

type mcpServerProcess struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	ended  chan struct{}
	status error  // after ended
	handle string // of the last call that was to be awaited
}

func startMCP(command []string) (*mcpServerProcess, error) {
	p := &mcpServerProcess{cmd: exec.Command(command[0], command[1:]...), ended: make(chan struct{})}
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	// A pipe of our own: Wait would close the other end before all is read.
	out, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.cmd.Stdout, p.in, p.out = write, in, bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	_ = write.Close()
	go func() {
		p.status = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// wait prints how the server has ended.
func (p *mcpServerProcess) wait() error {
	select {
	case <-p.ended:
	case <-time.After(mcpPatience):
		_ = p.cmd.Process.Kill()
		return errors.New("the server does not end")
	}
	fmt.Println("exit status", p.cmd.ProcessState.ExitCode())
	return nil
}

func runMCPClient(args []string) error {
	split := slices.Index(args, "--")
	if split < 0 {
		return errors.New("usage: mcpclient <step>… -- <command>…")
	}
	p, err := startMCP(args[split+1:])
	if err != nil {
		return err
	}
	defer p.cmd.Process.Kill()
	steps := args[:split]
	if len(steps) > 0 && steps[0] == "raw" {
		return p.raw()
	}
	return p.drive(steps)
}

// raw writes lines, and prints what comes back for each.
func (p *mcpServerProcess) raw() error {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if _, err := p.in.Write(append(lines.Bytes(), '\n')); err != nil {
			return err
		}
		if !bytes.Contains(lines.Bytes(), []byte(`"id"`)) {
			continue // a notification
		}
		answer, err := p.out.ReadString('\n')
		if err != nil {
			return err
		}
		if !json.Valid([]byte(answer)) {
			return fmt.Errorf("standard output has what is no JSON: %s", answer)
		}
		fmt.Print(answer)
	}
	_ = p.in.Close()
	if rest, err := io.ReadAll(p.out); err != nil || len(rest) > 0 {
		return fmt.Errorf("after the last answer: %q, %v", rest, err)
	}
	return p.wait()
}

// drive takes the steps of a client of the library.
func (p *mcpServerProcess) drive(steps []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), mcpPatience)
	defer cancel()
	changed := make(chan struct{}, 16)
	client := mcp.NewClient(&mcp.Implementation{Name: "scripted", Version: "1"}, &mcp.ClientOptions{
		Capabilities:           &mcp.ClientCapabilities{},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
	})
	session, err := client.Connect(ctx, &mcp.IOTransport{Reader: io.NopCloser(p.out), Writer: p.in}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		return errors.Join(err, p.wait())
	}
	for len(steps) > 0 {
		taken, err := p.step(ctx, session, changed, steps)
		if err != nil {
			return fmt.Errorf("%s: %w", steps[0], err)
		}
		if steps[0] == "ended" {
			return nil
		}
		steps = steps[taken:]
	}
	_ = p.in.Close()
	return p.wait()
}

// step takes one step, and returns how many words it is.
func (p *mcpServerProcess) step(ctx context.Context, session *mcp.ClientSession, changed <-chan struct{}, words []string) (taken int, err error) {
	switch words[0] {
	case "tools":
		list, err := session.ListTools(ctx, nil)
		if err != nil {
			return 0, err
		}
		names := []string{}
		for _, t := range list.Tools {
			names = append(names, t.Name)
		}
		fmt.Println("tools:", strings.Join(names, " "))
		return 1, nil
	case "describe":
		list, err := session.ListTools(ctx, nil)
		if err != nil {
			return 0, err
		}
		for _, t := range list.Tools {
			if t.Name == words[1] {
				fmt.Println(t.Description)
			}
		}
		return 2, nil
	case "call":
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: words[1], Arguments: json.RawMessage(words[2])})
		if refused, ok := errors.AsType[*jsonrpc.Error](err); ok {
			fmt.Println("error", refused.Code, refused.Message)
			return 3, nil
		}
		if err != nil {
			return 0, err
		}
		text, err := json.Marshal(result)
		fmt.Println(string(text))
		if found := regexp.MustCompile(`"handle":"([^"]+)"`).FindSubmatch(text); found != nil {
			p.handle = string(found[1])
		}
		return 3, err
	case "await":
		for {
			result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "await_call", Arguments: map[string]string{"handle": p.handle}})
			if err != nil {
				return 0, err
			}
			text, err := json.Marshal(result)
			if err != nil {
				return 0, err
			}
			if !bytes.Contains(text, []byte("no outcome yet")) {
				fmt.Println(string(text))
				return 1, nil
			}
		}
	case "copy":
		text, err := os.ReadFile(words[1])
		if err != nil {
			return 0, err
		}
		return 3, os.WriteFile(words[2], text, 0o600)
	case "changed":
		select {
		case <-changed:
			return 1, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	case "signal":
		return 1, p.cmd.Process.Signal(syscall.SIGTERM)
	case "ended":
		return 1, p.wait()
	}
	return 0, errors.New("no such step")
}
