package mcpclient

import (
	"bytes"
	"io"
)

// An eventReader passes on a stream of server-sent events, and shows the data of each event
// before the bytes that complete it are read. An event, and the stream as a whole, end
// with an error at their bounds.
type eventReader struct {
	body    io.ReadCloser
	most    int   // of an event
	left    int64 // of the stream
	see     func(data []byte) error
	failed  func(error) // gets to know of an error of see, or of a bound
	line    []byte
	data    []byte
	size    int // of the event, all of its lines
	failure error
}

func (r *eventReader) Read(p []byte) (int, error) {
	if r.failure != nil {
		return 0, r.failure
	}
	n, err := r.body.Read(p)
	if r.left -= int64(n); r.left < 0 {
		r.failure = misbehaved("the server's stream is longer than it may be")
	} else {
		r.failure = r.scan(p[:n])
	}
	if r.failure != nil {
		r.failed(r.failure)
		return 0, r.failure
	}
	return n, err
}

func (r *eventReader) Close() error { return r.body.Close() }

// scan takes lines apart. Lines of other fields than data are passed over.
func (r *eventReader) scan(p []byte) error {
	for len(p) > 0 {
		part, rest, ended := bytes.Cut(p, []byte{'\n'})
		if r.size += len(part) + 1; r.size > r.most {
			return tooLarge(r.most)
		}
		r.line = append(r.line, part...)
		if ended {
			if err := r.endLine(); err != nil {
				return err
			}
		}
		p = rest
	}
	return nil
}

func (r *eventReader) endLine() error {
	line := bytes.TrimSuffix(r.line, []byte{'\r'})
	r.line = r.line[:0]
	if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
		if len(r.data) > 0 {
			r.data = append(r.data, '\n')
		}
		r.data = append(r.data, bytes.TrimPrefix(data, []byte{' '})...)
		return nil
	}
	if len(line) > 0 {
		return nil
	}
	data := r.data
	r.data, r.size = nil, 0
	if len(data) == 0 {
		return nil
	}
	return r.see(data)
}
