package skill

import (
	"bytes"
	"syscall"
	"testing"
	"time"
)

// A slowWriter takes nothing before it is let go. It does not embed its buffer: io.Copy
// would use the buffer's ReadFrom.
type slowWriter struct {
	text  bytes.Buffer
	taken chan struct{} // gets a value when something is to be written
	let   chan struct{} // closed to let go
}

func (w *slowWriter) Write(p []byte) (int, error) {
	select {
	case w.taken <- struct{}{}:
	default:
	}
	<-w.let
	return w.text.Write(p)
}

// What a program has written is read, although something keeps its output open, and
// although nobody has had the time to read it before it ended.
func TestOutletLosesNothing(t *testing.T) {
	to := &slowWriter{taken: make(chan struct{}, 1), let: make(chan struct{})}
	o, err := newOutlet(to)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := syscall.Dup(int(o.write.Fd())) // as a descendant keeps it
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(kept)
	write := func(text string) {
		t.Helper()
		if _, err := syscall.Write(kept, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	write("the ")
	o.begin()
	<-to.taken
	write("answer")
	finished := make(chan struct{})
	go func() { o.finish(time.Now()); close(finished) }()
	close(to.let)
	<-finished
	if got := to.text.String(); got != "the answer" {
		t.Errorf("read %q", got)
	}
}
