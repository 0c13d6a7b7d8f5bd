package worker

import (
	"io"
	"os"
	"testing"
	"time"
)

// A worker has its time for each block that it reads, and not for all that has gathered.
func TestWriteLetsASlowReaderRead(t *testing.T) {
	t.Parallel()
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	const blocks, within, pause = 16, 2 * time.Second, 150 * time.Millisecond
	batches, done := make(chan []byte, 1), make(chan written, 1)
	go write(to, batches, within, done)
	batches <- make([]byte, blocks*writeBlock)
	close(batches)
	for range blocks - 1 { // the last one is in the pipe
		time.Sleep(pause) // it is what is tested: a reader that takes its time
		if _, err := io.ReadFull(from, make([]byte, writeBlock)); err != nil {
			t.Fatal(err)
		}
	}
	if w := <-done; w.err != nil || w.n != blocks*writeBlock {
		t.Errorf("%d bytes, %v", w.n, w.err)
	}
	_, _ = from.Close(), to.Close()
}
