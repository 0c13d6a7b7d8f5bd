package mcpclient

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// writeTimeout bounds the write of one message: a program that reads no more would
// otherwise stop the reader as well, which answers what the program asks.
const writeTimeout = 10 * time.Second

// misbehaved is what a server does wrong, after which its connection is closed.
type misbehaved string

func (m misbehaved) Error() string { return string(m) }

func tooLarge(most int) error {
	return misbehaved(fmt.Sprintf("the server sent a message of more than %d bytes", most))
}

// A lineConn is a connection by lines, each a message of JSON-RPC, to a program. Lines that
// are none are passed over, up to a bound: many programs greet on standard output.
type lineConn struct {
	in   *bufio.Reader
	read *os.File
	most int
	log  *slog.Logger

	writing sync.Mutex
	write   *os.File

	mu      sync.Mutex
	waiting map[jsonrpc.ID]*capture
	asked   int // requests of the server that have no answer yet

	garbage int
	ended   func(why error) // says why reading has ended
	close   func() error
}

func newLineConn(read, write *os.File, most int, log *slog.Logger) *lineConn {
	return &lineConn{
		in: bufio.NewReaderSize(read, 64<<10), read: read, write: write, most: most, log: log,
		waiting: map[jsonrpc.ID]*capture{},
	}
}

var _ mcp.Connection = (*lineConn)(nil)

// SessionID implements [mcp.Connection].
func (c *lineConn) SessionID() string { return "" }

// Close implements [mcp.Connection]. It ends the program.
func (c *lineConn) Close() error { return c.close() }

// Read implements [mcp.Connection].
func (c *lineConn) Read(context.Context) (jsonrpc.Message, error) {
	msg, err := c.next()
	if err != nil {
		c.ended(err)
	}
	return msg, err
}

func (c *lineConn) next() (jsonrpc.Message, error) {
	for {
		line, err := c.line()
		if err != nil {
			return nil, err
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		msg, err := jsonrpc.DecodeMessage(line)
		if err != nil {
			if c.garbage++; c.garbage > maxGarbage {
				return nil, misbehaved("what the program writes to standard output is not the protocol")
			}
			if c.garbage == 1 {
				c.log.Warn("an MCP server writes what is no message to standard output", "line", shown(string(line)))
			}
			continue
		}
		switch m := msg.(type) {
		case *jsonrpc.Response:
			c.answered(m)
		case *jsonrpc.Request:
			if m.IsCall() && !c.ask(1) {
				return nil, misbehaved("the server asks more than is answered")
			}
		}
		return msg, nil
	}
}

// line reads one, up to the bound of a message.
func (c *lineConn) line() ([]byte, error) {
	var line []byte
	for {
		part, err := c.in.ReadSlice('\n')
		if len(line)+len(part) > c.most {
			return nil, tooLarge(c.most)
		}
		switch {
		case err == nil && line == nil:
			return bytes.Clone(part), nil // a message keeps parts of it
		case err == nil:
			return append(line, part...), nil
		case errors.Is(err, bufio.ErrBufferFull):
			line = append(line, part...)
		case errors.Is(err, io.EOF) && len(line)+len(part) > 0:
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}

// answered hands the result of a request to its capture. An answer that nobody waits for
// has none.
func (c *lineConn) answered(r *jsonrpc.Response) {
	c.mu.Lock()
	waiting := c.waiting[r.ID]
	delete(c.waiting, r.ID)
	c.mu.Unlock()
	waiting.take(r)
}

// ask counts requests of the server, and reports whether there are few enough.
func (c *lineConn) ask(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked += n
	return c.asked <= maxAsked
}

// Write implements [mcp.Connection].
func (c *lineConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	line, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	switch m := msg.(type) {
	case *jsonrpc.Response:
		c.ask(-1)
	case *jsonrpc.Request:
		if captured := captureOf(ctx); captured != nil && m.IsCall() {
			c.mu.Lock()
			c.waiting[m.ID] = captured
			c.mu.Unlock()
			// An answer that never comes must not leave it there.
			context.AfterFunc(ctx, func() {
				c.mu.Lock()
				defer c.mu.Unlock()
				delete(c.waiting, m.ID)
			})
			captured.goesOut()
		}
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.write.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if _, err = c.write.Write(append(line, '\n')); err != nil {
		// Part of the line may have gone out, and whatever follows would be read as the rest of
		// it. The library keeps the connection if the caller has given up meanwhile.
		_ = c.close() // which only begins it
	}
	return err
}
