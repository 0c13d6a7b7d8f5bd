package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/agentd/agentd/rpc"
)

// MCPOptions are what the command of an MCP client chooses. The zero value takes what the
// agent's file says.
type MCPOptions struct {
	// Client is its name; "" where the file lists none.
	Client string
	// Names is bare or full, and Profile the provider for whose limits schemas are
	// projected.
	Names, Profile string
}

// An MCPClient is a client that an agent serves.
type MCPClient struct {
	// Client is its name.
	Client string `json:"client"`
	// Streams are its sessions over stdio, and Pending its calls that run or wait.
	Streams int `json:"streams"`
	Pending int `json:"pending"`
}

// MCP is the face of an agent for clients of the Model Context Protocol. It is safe for
// concurrent use.
type MCP interface {
	// MCPStream returns what serves a stream, which it then closes. The error says why there
	// is nothing to serve.
	MCPStream(o MCPOptions) (serve func(context.Context, io.ReadWriteCloser) error, err error)
}

// ErrNotReady is the error of an agent that starts or stops.
var ErrNotReady = errors.New("the agent is starting or stopping")

const (
	mcpUpgrade = "mcp"
	mcpStdio   = "/v1/mcp/stdio"
	codeMCP    = "mcp" // a fault code of this API: the options are wrong, or the tools cannot be listed
)

// mcpStream handles POST /v1/mcp/stdio. After the response 101, the connection carries
// messages of the protocol, each a line of JSON, in both directions.
func (a Agent) mcpStream(w http.ResponseWriter, r *http.Request) {
	if a.MCP == nil {
		writeFault(w, http.StatusNotFound, rpc.CodeInvalidRequest.String(), "this agent serves no MCP clients")
		return
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), mcpUpgrade) {
		w.Header().Set("Upgrade", mcpUpgrade)
		writeFault(w, http.StatusUpgradeRequired, rpc.CodeInvalidRequest.String(), "the request lacks Upgrade: "+mcpUpgrade)
		return
	}
	query := r.URL.Query()
	serve, err := a.MCP.MCPStream(MCPOptions{Client: query.Get("client"), Names: query.Get("names"), Profile: query.Get("profile")})
	if errors.Is(err, ErrNotReady) {
		writeFault(w, http.StatusServiceUnavailable, codeNotReady, err.Error())
		return
	}
	if err != nil {
		writeFault(w, http.StatusBadRequest, codeMCP, err.Error())
		return
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		writeFault(w, http.StatusInternalServerError, rpc.CodeInternal.String(), err.Error())
		return
	}
	err = conn.SetDeadline(time.Time{}) // those of the request
	if err == nil {
		_, err = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", mcpUpgrade)
	}
	if err != nil {
		_ = conn.Close()
		return
	}
	// The agent logs how it ended; there is nobody else to tell.
	_ = serve(context.WithoutCancel(r.Context()), &Stream{buffered.Reader, conn})
}

// A Stream is a connection that has become one of lines.
type Stream struct {
	reader *bufio.Reader // which may hold the beginning of what was sent
	net.Conn
}

// Read implements io.Reader.
func (s *Stream) Read(p []byte) (int, error) { return s.reader.Read(p) }

// CloseWrite ends what is sent, and leaves the other direction open.
func (s *Stream) CloseWrite() error {
	if half, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// MCPStream opens a stream to the agent's face for MCP clients. The caller closes it. ctx
// bounds the opening only. Errors are [*NotRunningError], [*RefusedError], or the
// connection's.
func (c *Client) MCPStream(ctx context.Context, o MCPOptions) (*Stream, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", c.socket)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, &NotRunningError{Socket: c.socket, Err: err}
	}
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	s, err := upgrade(ctx, conn, o)
	if !stop() && err == nil {
		err = ctx.Err() // the deadline is on the connection, or will be
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return s, nil
}

// upgrade asks for a stream on a connection.
func upgrade(ctx context.Context, conn net.Conn, o MCPOptions) (*Stream, error) {
	query := url.Values{}
	for name, value := range map[string]string{"client": o.Client, "names": o.Names, "profile": o.Profile} {
		if value != "" {
			query.Set(name, value)
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://agentd"+mcpStdio+"?"+query.Encode(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", mcpUpgrade)
	if err := r.Write(conn); err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	reader := bufio.NewReader(conn)
	resp, err := http.ReadResponse(reader, r)
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	defer resp.Body.Close() // empty after the status 101
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return &Stream{reader, conn}, nil
	}
	return nil, refusedBy(resp)
}

// refusedBy is the error of a response that is not the one that was asked for.
func refusedBy(resp *http.Response) error {
	const most = 64 << 10
	var f struct {
		Error struct{ Code, Message string }
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, most)).Decode(&f); err != nil || f.Error.Code == "" {
		f.Error.Code, f.Error.Message = "http", resp.Status
	}
	return &RefusedError{HTTPStatus: resp.StatusCode, Code: f.Error.Code, Message: f.Error.Message}
}
