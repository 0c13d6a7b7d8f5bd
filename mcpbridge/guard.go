package mcpbridge

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// guard stands before everything that a client asks of its server. The library does not
// recover: without it, one faulty handler would end the process for all clients.
func (f *face) guard(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		start := time.Now()
		ctx, traced := f.beginTrace(ctx, req)
		defer func() { f.endTrace(traced, start, method, req, result, err) }() // after what a panic becomes
		defer func() {
			if r := recover(); r != nil {
				f.bridge.opts.Logger.LogAttrs(ctx, slog.LevelError, "an MCP request failed",
					slog.String("client", f.client.Name), slog.String("method", method), slog.String("error", fmt.Sprintf("panic: %v\n%s", r, debug.Stack())))
				result, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
			}
		}()
		// The library lists the prompts of a server that has declared none.
		if strings.HasPrefix(method, "prompts/") {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "method not found: this server has no prompts"}
		}
		instead := &substitute{}
		result, err = next(context.WithValue(ctx, substituteKey{}, instead), method, req)
		switch {
		case err == nil && instead.err != nil:
			result, err = nil, instead.err
		case err == nil && instead.result != nil:
			result = instead.result
		}
		return result, err
	}
}

// A substitute is a result of another kind than the library lets a handler return, or an
// error of the protocol in place of a result.
type substitute struct {
	result mcp.Result
	err    error
}

type substituteKey struct{}

// slots bound the calls of one client that run or wait. The zero value has none.
type slots struct {
	most, mostOfSession int

	mu       sync.Mutex
	all      int                 // guarded by mu
	sessions map[mcp.Session]int // guarded by mu
}

// take takes a slot, or says why there is none.
func (s *slots) take(session mcp.Session) (refused string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= s.most {
		return fmt.Sprintf("%d calls of this client run or wait already", s.all)
	}
	if n := s.sessions[session]; n >= s.mostOfSession {
		return fmt.Sprintf("%d calls of this session run or wait already", n)
	}
	if s.sessions == nil {
		s.sessions = map[mcp.Session]int{}
	}
	s.all++
	s.sessions[session]++
	return ""
}

// empty reports whether no slot is taken.
func (s *slots) empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all == 0
}

// free gives a slot back.
func (s *slots) free(session mcp.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.sessions[session]--; s.sessions[session] <= 0 {
		delete(s.sessions, session)
	}
}
