package worker

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/agentd/agentd/skill/internal/wire"
)

// readBuffer is what is read of a worker's output at a time, and writeBlock what it must read
// of its input within the time that it has: what a pipe holds.
const readBuffer, writeBlock = 64 << 10, 64 << 10

// A received is what the reader has found: a message, or why there is none.
type received struct {
	message wire.Message
	err     error // ends the reading
}

// The ends of a program's standard output.
var (
	errClosed = errors.New("it has closed its standard output")
	errNoEnd  = errors.New("it has closed its standard output in the middle of a line")
)

// read reads messages until the first that is none, or until over is closed. What has been
// read before counts; deliver is called with each.
func read(from io.Reader, maxBytes int, deliver chan<- received, over <-chan struct{}) {
	lines := bufio.NewReaderSize(from, readBuffer)
	for {
		var r received
		line, err := readLine(lines, maxBytes)
		if err == nil && len(bytes.TrimSpace(line)) == 0 {
			err = errors.New("it has written an empty line")
		}
		if r.err = err; err == nil {
			if r.message, err = wire.Decode(line); err != nil {
				r.err = fmt.Errorf("it has written a line that is no message of the protocol: %w", err)
			}
		}
		select {
		case deliver <- r:
		case <-over:
			return
		}
		if r.err != nil {
			return
		}
	}
}

// readLine reads one line of at most so many bytes into memory of its own.
func readLine(r *bufio.Reader, maxBytes int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > maxBytes {
			return nil, fmt.Errorf("it has written a line of more than %d bytes", maxBytes)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case len(line) > 0 && errors.Is(err, io.EOF):
			return nil, errNoEnd
		default:
			return nil, errClosed
		}
	}
}

// writeNow writes what a pipe takes without waiting, and returns how much that was. What is
// wrong shows when the rest is written.
func writeNow(to *os.File, batch []byte) (n int) {
	conn, err := to.SyscallConn()
	if err != nil {
		return 0
	}
	_ = conn.Write(func(fd uintptr) bool {
		n, _ = syscall.Write(int(fd), batch)
		return true
	})
	return max(n, 0)
}

// A written is how far a batch came.
type written struct {
	n   int
	err error
}

// write writes batches until there are no more, or one fails: each block of one within a time,
// so that a batch of many calls gets as long as it takes a worker that reads.
func write(to *os.File, batches <-chan []byte, within time.Duration, done chan<- written) {
	for batch := range batches {
		var all written
		for all.err == nil && all.n < len(batch) {
			_ = to.SetWriteDeadline(time.Now().Add(within)) // pipes have deadlines
			n, err := to.Write(batch[all.n:min(len(batch), all.n+writeBlock)])
			all.n, all.err = all.n+n, err
		}
		_ = to.SetWriteDeadline(time.Time{}) // it would hold for writeNow, too
		done <- all                          // it has room: there is one batch at a time
	}
}
