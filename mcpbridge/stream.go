package mcpbridge

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ServeStream serves one session of a client over a stream of lines, as the protocol's
// stdio transport has it, until the stream or ctx ends. Both revisions of the protocol
// may be spoken; a client keeps to the one that it began with. When it returns, the calls
// of the session have ended, but for those that a durable queue keeps, and the stream is
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
	lines := newLineConn(stream, &b.longest, b.opts.MaxSessionPending+ownRequests)
	b.watch(lines)
	defer b.unwatch(lines)
	// The library must not see the end of ctx: it would drop answers to calls that have
	// just ended by it.
	own := context.WithValue(context.WithoutCancel(ctx), streamKey{}, lines)
	session, err := f.server.Connect(own, lines, nil)
	if err != nil {
		return errors.Join(err, lines.Close())
	}
	// Closing the lines, rather than the session: that would wait for calls, which the end
	// of the lines ends.
	defer context.AfterFunc(ctx, func() { _ = lines.Close() })()
	defer context.AfterFunc(b.ctx, func() { _ = lines.Close() })() //nolint:contextcheck // the bridge's end ends it, too
	err = session.Wait()
	f.parked.leave(session)
	if e := lines.Close(); err == nil {
		err = e
	}
	if ctx.Err() != nil || b.ctx.Err() != nil || isEnd(err) {
		return ctx.Err()
	}
	return err
}

// streamKey is the key by which the context of a request shows that its session is a
// stream's, and lasts longer than the request.
type streamKey struct{}

func (b *Bridge) watch(c *lineConn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.streams[c] = struct{}{}
}

func (b *Bridge) unwatch(c *lineConn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.streams, c)
}

// Drain waits until the calls that streams have taken are answered, or ctx ends. It is for a
// backend that makes no more calls, and comes before [Bridge.Close], which cuts off what
// is not answered. Whoever waits for the outcome of an earlier call is told at once that
// there is none yet.
func (b *Bridge) Drain(ctx context.Context) {
	b.stopWaiting()
	b.mu.Lock()
	streams := slices.Collect(maps.Keys(b.streams))
	b.mu.Unlock()
	for _, c := range streams {
		select {
		case <-c.whenAnswered():
		case <-c.closed:
		case <-ctx.Done():
			return
		}
	}
}

// ownRequests is how many requests a session may have under way beside its calls: lists,
// resources, and the one that listens to changes.
const ownRequests = 32

// isEnd reports whether a stream has ended in the way that streams end when the program
// at the other end does.
func isEnd(err error) bool {
	return err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, mcp.ErrConnectionClosed)
}
