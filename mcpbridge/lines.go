package mcpbridge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A lineConn carries messages as lines. Unlike the library's own, it goes on after a line
// that is no message, which it answers as JSON-RPC demands, and it bounds how many
// requests are under way.
type lineConn struct {
	stream  io.ReadWriteCloser
	reader  *bufio.Reader
	longest *atomic.Int64 // bytes of a line; whoever owns it may change it
	most    int           // requests under way

	// incoming has the lines of a goroutine of its own: closing a stream need not end a
	// read of it, as with the standard input of a process.
	incoming chan lineOrError
	writing  sync.Mutex

	mu   sync.Mutex
	open map[jsonrpc.ID]bool // requests under way, true for calls of tools; guarded by mu
	// answering counts the answers that are being written. answered is closed when no call
	// is under way and none is; nil before somebody waits for that. Both guarded by mu.
	answering int
	answered  chan struct{}

	close   sync.Once
	closed  chan struct{}
	closing error
}

type lineOrError struct {
	line []byte
	err  error
}

var (
	_ mcp.Transport  = (*lineConn)(nil)
	_ mcp.Connection = (*lineConn)(nil)
)

func newLineConn(stream io.ReadWriteCloser, longest *atomic.Int64, most int) *lineConn {
	return &lineConn{
		stream: stream, reader: bufio.NewReaderSize(stream, 64<<10), longest: longest, most: most,
		incoming: make(chan lineOrError), open: map[jsonrpc.ID]bool{}, closed: make(chan struct{}),
	}
}

// Connect implements [mcp.Transport].
func (c *lineConn) Connect(context.Context) (mcp.Connection, error) {
	go c.readLines()
	return c, nil
}

// readLines reads until the stream ends, or, once the connection is closed, until the
// stream lets go of the last read.
func (c *lineConn) readLines() {
	for {
		line, err := c.line()
		select {
		case c.incoming <- lineOrError{line, err}:
		case <-c.closed:
			return
		}
		if err != nil && !errors.Is(err, errLineTooLong) {
			return
		}
	}
}

// SessionID implements [mcp.Connection].
func (c *lineConn) SessionID() string { return "" }

// errLineTooLong is the error of a line that was read to its end, and not kept.
var errLineTooLong = errors.New("the message is too long")

// Read implements [mcp.Connection]. It returns the next message that a session can serve.
func (c *lineConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		var in lineOrError
		select {
		case in = <-c.incoming:
		case <-c.closed:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		var msg jsonrpc.Message
		err := in.err
		switch {
		case errors.Is(err, errLineTooLong):
			err = c.refuse(nil, jsonrpc.CodeInvalidRequest, errLineTooLong.Error())
		case err == nil && len(in.line) > 0: // none is between two messages
			msg, err = c.message(in.line)
		}
		if msg != nil || err != nil {
			return msg, err
		}
	}
}

// message decodes a line. A line that is none, or that cannot be served, is answered here:
// then both results are nil, unless the answer cannot be written.
func (c *lineConn) message(line []byte) (jsonrpc.Message, error) {
	if !json.Valid(line) {
		return nil, c.refuse(nil, jsonrpc.CodeParseError, "the line is not JSON")
	}
	if line[0] == '[' {
		return nil, c.refuse(nil, jsonrpc.CodeInvalidRequest, "batches are not taken: send one message a line")
	}
	msg, err := jsonrpc.DecodeMessage(line)
	if err != nil {
		return nil, c.refuse(nil, jsonrpc.CodeInvalidRequest, "the line is no JSON-RPC message")
	}
	req, ok := msg.(*jsonrpc.Request)
	if !ok || !req.IsCall() {
		return msg, nil
	}
	twice, full := c.take(req)
	switch {
	case twice:
		// Under no id, because the answer to the first request has this one.
		return nil, c.refuse(nil, jsonrpc.CodeInvalidRequest, "a request with this id is under way")
	case full:
		return nil, c.refuse(req.ID.Raw(), jsonrpc.CodeInternalError, "too many requests of this session are under way")
	}
	return msg, nil
}

// take counts a request that begins, unless its id is in use or there are too many. What
// is refused is answered without the lock: a client that does not read would hold it.
func (c *lineConn) take(req *jsonrpc.Request) (twice, full bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, twice = c.open[req.ID]; twice || len(c.open) >= c.most {
		return twice, true
	}
	c.open[req.ID] = req.Method == "tools/call"
	return false, false
}

// line reads a line without its end. It reads one that is too long to its end, so that
// the next is found, and keeps none of it. What follows the last end is no line.
func (c *lineConn) line() ([]byte, error) {
	var kept []byte
	long := false
	for {
		part, err := c.reader.ReadSlice('\n')
		if long = long || len(kept)+len(part) > int(c.longest.Load()); long {
			kept = nil
		} else {
			kept = append(kept, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return nil, err
		case long:
			return nil, errLineTooLong
		}
		return bytes.TrimSpace(kept), nil
	}
}

// refuse answers what is no request that could be served. id is null where the request
// that the answer belongs to is not known.
func (c *lineConn) refuse(id any, code int64, why string) error {
	answer := struct {
		Version string        `json:"jsonrpc"`
		ID      any           `json:"id"`
		Error   jsonrpc.Error `json:"error"`
	}{"2.0", id, jsonrpc.Error{Code: code, Message: why}}
	line, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	return c.write(line)
}

// Write implements [mcp.Connection].
func (c *lineConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if answer, ok := msg.(*jsonrpc.Response); ok {
		c.mu.Lock()
		delete(c.open, answer.ID) // before the client can use the id again
		c.answering++
		c.mu.Unlock()
		defer c.wrote()
	}
	line, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	return c.write(line)
}

// wrote counts the end of an answer.
func (c *lineConn) wrote() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answering--
	c.settle()
}

// whenAnswered returns a channel that is closed when every call of a tool is answered.
func (c *lineConn) whenAnswered() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answered == nil {
		c.answered = make(chan struct{})
		c.settle()
	}
	return c.answered
}

// settle closes answered if there is nothing left to answer. The caller holds the lock.
func (c *lineConn) settle() {
	if c.answered == nil || c.answering > 0 {
		return
	}
	for _, call := range c.open {
		if call {
			return
		}
	}
	select {
	case <-c.answered:
	default:
		close(c.answered)
	}
}

func (c *lineConn) write(line []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err := c.stream.Write(append(line, '\n'))
	return err
}

// Close implements [mcp.Connection]. It ends a Read and a Write that are under way.
func (c *lineConn) Close() error {
	c.close.Do(func() {
		close(c.closed)
		c.closing = c.stream.Close()
	})
	return c.closing
}
