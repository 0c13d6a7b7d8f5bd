package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"connectrpc.com/connect"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// serveHTTP serves a handler on loopback.
func serveHTTP(h http.Handler) (*callee, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: callLimit}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	stop := func() error {
		err := s.Close()
		if serr := <-served; !errors.Is(serr, http.ErrServerClosed) {
			err = errors.Join(err, serr)
		}
		return err
	}
	return &callee{address: "http://" + l.Addr().String(), stop: stop}, nil
}

// httpClient keeps a connection for each caller; by default it would keep two.
func httpClient() *http.Client {
	return &http.Client{Timeout: callLimit, Transport: &http.Transport{MaxIdleConnsPerHost: mostInFlight}}
}

// A connectClient calls by connect-go.
type connectClient struct {
	http *http.Client
	echo *connect.Client[wrapperspb.BytesValue, wrapperspb.BytesValue]
}

func serveConnect(string) (*callee, error) {
	mux := http.NewServeMux()
	mux.Handle(echoMethod, connect.NewUnaryHandler(echoMethod,
		func(_ context.Context, r *connect.Request[wrapperspb.BytesValue]) (*connect.Response[wrapperspb.BytesValue], error) {
			return connect.NewResponse(r.Msg), nil
		}))
	return serveHTTP(mux)
}

func dialConnect(address string) (client, error) {
	c := httpClient()
	return connectClient{c, connect.NewClient[wrapperspb.BytesValue, wrapperspb.BytesValue](c, address+echoMethod)}, nil
}

func (c connectClient) call(payload []byte) error {
	res, err := c.echo.CallUnary(context.Background(), connect.NewRequest(&wrapperspb.BytesValue{Value: payload}))
	if err != nil {
		return err
	}
	if len(res.Msg.GetValue()) != len(payload) {
		return errWrongReply
	}
	return nil
}

func (c connectClient) close() error { c.http.CloseIdleConnections(); return nil }

// A reviewed is the payload as a type, which an MCP server has of its arguments.
type reviewed struct {
	PRURL    string    `json:"prUrl"`
	Severity string    `json:"severity"`
	Findings []finding `json:"findings"`
}

type finding struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Rule    string `json:"rule"`
	Message string `json:"message"`
}

// An mcpClient calls a tool by the SDK of the Model Context Protocol.
type mcpClient struct {
	http    *http.Client
	session *mcp.ClientSession
}

func serveMCP(string) (*callee, error) {
	server := mcp.NewServer(&mcp.Implementation{Name: "callee", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "review", InputSchema: json.RawMessage(reviewSchema), OutputSchema: json.RawMessage(reviewSchema)},
		func(_ context.Context, _ *mcp.CallToolRequest, in reviewed) (*mcp.CallToolResult, reviewed, error) {
			return nil, in, nil
		})
	return serveHTTP(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}))
}

func dialMCP(address string) (client, error) {
	c := httpClient()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "caller", Version: "1.0.0"}, nil).Connect(context.Background(),
		&mcp.StreamableClientTransport{Endpoint: address, HTTPClient: c, DisableStandaloneSSE: true}, nil)
	return mcpClient{c, session}, err
}

func (c mcpClient) call(payload []byte) error {
	res, err := c.session.CallTool(context.Background(), &mcp.CallToolParams{Name: "review", Arguments: json.RawMessage(payload)})
	if err != nil {
		return err
	}
	if answer, ok := res.StructuredContent.(map[string]any); !ok || res.IsError || len(answer) != 3 {
		return errWrongReply
	}
	return nil
}

func (c mcpClient) close() error {
	err := c.session.Close()
	c.http.CloseIdleConnections()
	return err
}

// A restClient posts JSON.
type restClient struct {
	http *http.Client
	url  string
}

// serveREST validates what comes and what it answers, as a service with a published
// schema does.
func serveREST(string) (*callee, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(reviewSchema)))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("mem:///review.json", document); err != nil {
		return nil, err
	}
	compiled, err := compiler.Compile("mem:///review.json")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /review", func(w http.ResponseWriter, r *http.Request) {
		in, err := jsonschema.UnmarshalJSON(http.MaxBytesReader(w, r.Body, 1<<20))
		if err == nil {
			err = compiled.Validate(in)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := compiled.Validate(in); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(in)
	})
	return serveHTTP(mux)
}

func dialREST(address string) (client, error) {
	return restClient{httpClient(), address + "/review"}, nil
}

func (c restClient) call(payload []byte) error {
	res, err := c.http.Post(c.url, "application/json", bytes.NewReader(payload))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return err
	case res.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s", res.Status, body)
	case len(bytes.TrimSpace(body)) != len(payload):
		return errWrongReply
	}
	return nil
}

func (c restClient) close() error { c.http.CloseIdleConnections(); return nil }
