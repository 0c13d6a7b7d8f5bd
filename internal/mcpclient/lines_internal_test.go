package mcpclient

import (
	"context"
	"log/slog"
	"os"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A message that could not be written whole is the last one, even if its caller has given up
// meanwhile: the next would be read as the rest of it.
func TestWriteThatFailsEndsTheConnection(t *testing.T) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ours.Close() }()
	_ = theirs.Close()
	ended := false
	conn := newLineConn(nil, ours, 1<<20, slog.New(slog.DiscardHandler))
	conn.close = func() error { ended = true; return nil }
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := conn.Write(ctx, &jsonrpc.Request{Method: "notifications/x"}); err == nil || !ended {
		t.Errorf("%v, and the connection goes on: %t", err, !ended)
	}
}
