package mcphttp

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"weak"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Guards has the servers that have the middleware of this package: a server keeps it for as long
// as it lives, and needs it once. The zero value is ready, and safe for concurrent use.
type Guards struct {
	mu      sync.Mutex
	guarded map[weak.Pointer[mcp.Server]]struct{} // guarded by mu
}

// guard adds the middleware to a server, unless the server has it.
func (g *Guards) guard(server *mcp.Server, log *slog.Logger) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := weak.Make(server)
	if _, ok := g.guarded[key]; ok {
		return
	}
	if g.guarded == nil {
		g.guarded = map[weak.Pointer[mcp.Server]]struct{}{}
	}
	g.guarded[key] = struct{}{}
	runtime.AddCleanup(server, g.forget, key)
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler { return guarded(next, log) })
}

func (g *Guards) forget(key weak.Pointer[mcp.Server]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.guarded, key)
}

// guarded stands before the methods of a server. A panic there would end the process, as the
// library recovers none. log is for what came in another way than through a handler.
func guarded(next mcp.MethodHandler, log *slog.Logger) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		x, log := exchangeOf(req), log
		if x != nil {
			log = x.client.handler.cfg.Logger
		}
		defer func() {
			if p := recover(); p != nil {
				log.LogAttrs(ctx, slog.LevelError, "a method of an MCP server panicked", slog.String("method", method), slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
				result, err = nil, internalError()
			}
		}()
		// The library does not wait for what is served of a notification.
		if x != nil && !strings.HasPrefix(method, "notifications/") {
			if !x.hold() {
				return nil, internalError()
			}
			defer x.letGo()
			bound, stop := x.bind(ctx)
			defer stop()
			ctx = bound
		}
		result, err = next(ctx, method, req)
		return result, shown(ctx, log, method, err)
	}
}

// shown keeps errors of this program to itself: the library sends their text to the client.
func shown(ctx context.Context, log *slog.Logger, method string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return err
	}
	if ctx.Err() == nil {
		log.LogAttrs(ctx, slog.LevelError, "a method of an MCP server failed", slog.String("method", method), slog.Any("error", err))
	}
	return internalError()
}

func internalError() error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
}
