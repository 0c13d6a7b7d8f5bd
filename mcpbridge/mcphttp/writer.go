package mcphttp

import (
	"net/http"
	"time"
)

// A writer is the way to a client that may not read. Each write has its own time, so that an
// answer may come late and a stream last long, but nobody waits for a client that takes nothing.
type writer struct {
	http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	http1   bool
	// header is called once, before the header goes out.
	header func(http.Header)
	wrote  bool
}

func newWriter(w http.ResponseWriter, r *http.Request, timeout time.Duration) *writer {
	out := &writer{ResponseWriter: w, control: http.NewResponseController(w), timeout: timeout, http1: r.ProtoMajor < 2}
	out.deadline(0) // of the request before on the same connection
	return out
}

// deadline sets that of the next write; 0 sets none. Where there is no connection, as in some
// tests, there is nothing to bound.
func (w *writer) deadline(after time.Duration) {
	var at time.Time
	if after > 0 {
		at = time.Now().Add(after)
	}
	_ = w.control.SetWriteDeadline(at)
}

// end bounds what package http writes after the handler. In HTTP/2 a deadline is one of the
// stream, which would end in the middle of it, and writes have other bounds there.
func (w *writer) end() {
	if w.http1 {
		w.deadline(w.timeout)
	}
}

func (w *writer) begin() {
	if !w.wrote && w.header != nil {
		w.header(w.Header())
	}
	w.wrote = true
}

func (w *writer) WriteHeader(status int) {
	w.begin()
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) Write(data []byte) (int, error) {
	w.begin()
	w.deadline(w.timeout)
	defer w.deadline(0)
	return w.ResponseWriter.Write(data)
}

// FlushError is what http.ResponseController calls.
func (w *writer) FlushError() error {
	w.begin()
	w.deadline(w.timeout)
	defer w.deadline(0)
	return w.control.Flush()
}

// Flush implements http.Flusher.
func (w *writer) Flush() { _ = w.FlushError() } // the next write meets the error
