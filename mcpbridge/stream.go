package mcpbridge

import (
	"context"
	"errors"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ServeStream serves one session of a client over a stream of lines, as the protocol's
// stdio transport has it, until the stream or ctx ends. Both revisions of the protocol
// may be spoken. When it returns, the calls of the session have ended and the stream is
// closed. The end of the stream is no error.
func (b *Bridge) ServeStream(ctx context.Context, c Client, stream io.ReadWriteCloser) error {
	f, err := b.face(c)
	if err == nil && !b.begin() {
		err = errClosed
	}
	if err != nil {
		return errors.Join(err, stream.Close())
	}
	defer b.running.Done()
	session, err := f.server.Connect(ctx, &mcp.IOTransport{Reader: stream, Writer: stream, MaxLineLength: b.opts.MaxFrameBytes}, nil)
	if err != nil {
		return errors.Join(err, stream.Close())
	}
	defer context.AfterFunc(ctx, func() { _ = session.Close() })()
	defer context.AfterFunc(b.ctx, func() { _ = session.Close() })()
	if err := session.Wait(); err != nil && ctx.Err() == nil && b.ctx.Err() == nil {
		return err
	}
	return ctx.Err()
}
