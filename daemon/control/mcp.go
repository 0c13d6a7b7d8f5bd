package control

import (
	"bufio"
	"bytes"
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
	Client string `json:"client"`
	// Names is bare or full, and Profile the provider for whose limits schemas are
	// projected.
	Names   string `json:"names"`
	Profile string `json:"profile"`
}

// An MCPClient is a client that an agent serves.
type MCPClient struct {
	// Client is its name.
	Client string `json:"client"`
	// Streams are its sessions over stdio, and Pending its calls that run or wait.
	Streams int `json:"streams"`
	Pending int `json:"pending"`
	// Sessions are all of its sessions, over stdio and over HTTP.
	Sessions int `json:"sessions,omitempty"`
}

// MCP is the face of an agent for clients of the Model Context Protocol. It is safe for
// concurrent use.
type MCP interface {
	// MCPStream returns what serves a stream, which it then closes. The error says why there
	// is nothing to serve.
	MCPStream(o MCPOptions) (serve func(context.Context, io.ReadWriteCloser) error, err error)
	// MCPListen serves clients over HTTP until release is called, or the agent stops. ctx
	// bounds the opening.
	MCPListen(ctx context.Context, o MCPListenOptions) (at *MCPListening, release func(), err error)
	// MCPEnded is closed when the agent serves no client any more.
	MCPEnded() <-chan struct{}
}

// MCPListenOptions say where, and to whom.
type MCPListenOptions struct {
	MCPOptions
	// Address is <host>:<port>; "" is any free port of 127.0.0.1.
	Address string `json:"address"`
	// Open lets in everybody on this machine without a token.
	Open bool `json:"open"`
}

// MCPListening is where an agent serves MCP clients over HTTP.
type MCPListening struct {
	URL string `json:"url"`
	// Client is the one that is served, or "" for those of the agent's file, by their own
	// tokens.
	Client string `json:"client,omitempty"`
	// Token is the client's bearer token for as long as the server is open, or "" where none
	// is asked for, or the file has it.
	Token string `json:"token,omitempty"`
}

// ErrNotReady is the error of an agent that starts or stops.
var ErrNotReady = errors.New("the agent is starting or stopping")

const (
	mcpUpgrade = "mcp"
	mcpStdio   = "/v1/mcp/stdio"
	mcpListen  = "/v1/mcp/listen"
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
	if err != nil {
		refuseMCP(w, err)
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

func refuseMCP(w http.ResponseWriter, err error) {
	if errors.Is(err, ErrNotReady) {
		writeFault(w, http.StatusServiceUnavailable, codeNotReady, err.Error())
		return
	}
	writeFault(w, http.StatusBadRequest, codeMCP, err.Error())
}

// mcpListener handles POST /v1/mcp/listen. The response begins with a line that says where
// the server is, and ends with the server: when the client goes, or the agent stops.
func (a Agent) mcpListener(w http.ResponseWriter, r *http.Request) {
	if a.MCP == nil {
		writeFault(w, http.StatusNotFound, rpc.CodeInvalidRequest.String(), "this agent serves no MCP clients")
		return
	}
	var o MCPListenOptions
	if err := decodeStrict(http.MaxBytesReader(w, r.Body, maxAuditRequestBytes), &o); err != nil {
		refuseBody(w, rpc.CodeInvalidRequest.String(), "the request is not {address?, client?, names?, profile?, open?}", err)
		return
	}
	at, release, err := a.MCP.MCPListen(r.Context(), o)
	if err != nil {
		refuseMCP(w, err)
		return
	}
	defer release()
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // that of the request
	writeJSON(w, http.StatusOK, at)
	if control.Flush() != nil {
		return
	}
	select {
	case <-r.Context().Done():
	case <-a.MCP.MCPEnded():
	}
}

// MCPListen has the agent serve MCP clients over HTTP until the caller closes hold, or the
// agent stops, which ends reads from it. ctx bounds the opening only. Errors are those of
// [Client.MCPStream].
func (c *Client) MCPListen(ctx context.Context, o MCPListenOptions) (at MCPListening, hold io.ReadCloser, err error) {
	body, err := json.Marshal(o)
	if err != nil {
		return at, nil, fmt.Errorf("control: %w", err)
	}
	conn, _, resp, err := c.exchange(ctx, mcpListen, http.Header{"Content-Type": {"application/json"}}, body) //nolint:bodyclose // closing the connection ends it
	if err != nil {
		return at, nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return at, nil, errors.Join(refusedBy(resp), conn.Close())
	}
	if err := json.NewDecoder(resp.Body).Decode(&at); err != nil {
		return at, nil, errors.Join(fmt.Errorf("control: %w", err), conn.Close())
	}
	return at, struct {
		io.Reader
		io.Closer
	}{resp.Body, conn}, nil
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
	query := url.Values{}
	for name, value := range map[string]string{"client": o.Client, "names": o.Names, "profile": o.Profile} {
		if value != "" {
			query.Set(name, value)
		}
	}
	conn, reader, resp, err := c.exchange(ctx, mcpStdio+"?"+query.Encode(), http.Header{"Connection": {"Upgrade"}, "Upgrade": {mcpUpgrade}}, nil) //nolint:bodyclose // it has none, or the connection is closed
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return nil, errors.Join(refusedBy(resp), conn.Close())
	}
	return &Stream{reader, conn}, nil
}

// exchange makes a request whose response does not end, on a connection of its own. ctx
// bounds it until the response's header.
func (c *Client) exchange(ctx context.Context, path string, header http.Header, body []byte) (net.Conn, *bufio.Reader, *http.Response, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", c.socket)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, nil, nil, &NotRunningError{Socket: c.socket, Err: err}
	}
	if err != nil {
		return nil, nil, nil, fmt.Errorf("control: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://agentd"+path, bytes.NewReader(body))
	if err != nil {
		return nil, nil, nil, errors.Join(fmt.Errorf("control: %w", err), conn.Close())
	}
	r.Header = header
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // which ends what waits below
	reader := bufio.NewReader(conn)
	var resp *http.Response
	if err = r.Write(conn); err == nil {
		resp, err = http.ReadResponse(reader, r)
	}
	if !stop() { // the connection is closed, or will be
		err = ctx.Err()
	}
	if err != nil {
		return nil, nil, nil, errors.Join(fmt.Errorf("control: %w", err), conn.Close())
	}
	return conn, reader, resp, nil
}

// refusedBy is the error of a response that is not the one that was asked for.
func refusedBy(resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return errors.New("control: the response is that of another program")
	}
	const most = 64 << 10
	var f struct {
		Error struct{ Code, Message string }
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, most)).Decode(&f); err != nil || f.Error.Code == "" {
		f.Error.Code, f.Error.Message = "http", resp.Status
	}
	return &RefusedError{HTTPStatus: resp.StatusCode, Code: f.Error.Code, Message: f.Error.Message}
}
