package mcphttp

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// guard is the middleware that stands before the methods of a server. A panic there would end
// the process, as the library recovers none.
func (h *Handler) guard(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				h.cfg.Logger.LogAttrs(ctx, slog.LevelError, "a method of an MCP server panicked", slog.String("method", method), slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
				result, err = nil, internalError()
			}
		}()
		// The library does not wait for what is served of a notification.
		if x := exchangeOf(req); x != nil && x.client.handler == h && !strings.HasPrefix(method, "notifications/") {
			if !x.hold() {
				return nil, internalError()
			}
			defer x.letGo()
			bound, stop := x.bind(ctx)
			defer stop()
			ctx = bound
		}
		result, err = next(ctx, method, req)
		return result, h.shown(ctx, method, err)
	}
}

// shown keeps errors of this program to itself: the library sends their text to the client.
func (h *Handler) shown(ctx context.Context, method string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return err
	}
	if ctx.Err() == nil {
		h.cfg.Logger.LogAttrs(ctx, slog.LevelError, "a method of an MCP server failed", slog.String("method", method), slog.Any("error", err))
	}
	return internalError()
}

func internalError() error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
}
