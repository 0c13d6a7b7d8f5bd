package skill

import (
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// An outlet reads what a program writes to one of its outputs. os/exec would do so, but
// gives up what it has not read yet when something keeps the output open for longer than
// WaitDelay; on a machine with more to do than it can, that is an answer lost.
type outlet struct {
	read, write *os.File
	to          io.Writer
	done        chan struct{} // closed when reading has ended; nil before it begins
}

// newOutlet returns an outlet whose write end is the program's.
func newOutlet(to io.Writer) (*outlet, error) {
	o := &outlet{to: to}
	var err error
	if o.read, o.write, err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("skill: %w", err)
	}
	return o, nil
}

// begin reads, once the program has been started. Only the program and its children have
// the write end from now on.
func (o *outlet) begin() {
	_ = o.write.Close() // nothing has been written here
	o.done = make(chan struct{})
	go func() {
		defer close(o.done)
		_, _ = io.Copy(o.to, o.read) // it ends with the last writer, or with the deadline of finish
	}()
}

// finish returns when all has been read that the program has written, and what its children
// write by the deadline. The program has ended.
func (o *outlet) finish(deadline time.Time) {
	defer o.close()
	if o.done == nil { // it has never run
		return
	}
	enough := time.NewTimer(time.Until(deadline))
	defer enough.Stop()
	select {
	case <-o.done:
		return
	case <-enough.C:
	}
	// Something keeps the output open. What is in the pipe by now is read, and no more.
	_ = o.read.SetReadDeadline(time.Now()) // it fails only for files that have no deadlines
	<-o.done
	_ = o.read.SetReadDeadline(time.Time{})
	if conn, err := o.read.SyscallConn(); err == nil {
		_ = conn.Read(func(fd uintptr) bool { o.drain(int(fd)); return true })
	}
}

// drain reads from a descriptor that does not block until there is nothing more.
func (o *outlet) drain(fd int) {
	const most = 64 << 10 // a pipe holds no more by default; its writers may go on
	buf := make([]byte, most)
	for range 2 {
		n, err := syscall.Read(fd, buf)
		if n <= 0 || err != nil {
			return
		}
		_, _ = o.to.Write(buf[:n]) // the writers here never fail
	}
}

func (o *outlet) close() {
	_ = o.write.Close() // closed already if the program has run
	_ = o.read.Close()  // it was only read
}
