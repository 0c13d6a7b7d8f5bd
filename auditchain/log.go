package auditchain

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"

	"github.com/agentd/agentd/auditchain/internal/chainhash"
	"github.com/agentd/agentd/auditchain/internal/filelock"
)

// A Log is an audit log that is open for writing. Its methods are safe for
// concurrent use. The methods of its [Reader] read what is durable.
type Log struct {
	*Reader
	lock      *filelock.Lock
	writer    *writer
	recovery  Recovery
	publisher *publisher

	queue   chan *request
	control chan *command
	erasing chan struct{} // holds a token while an erasure runs
	stopped chan struct{} // closed when the writer goroutine has ended

	mu     sync.RWMutex // held for reading while sending to queue or control
	closed bool         // guarded by mu

	closeOnce sync.Once
	closeErr  error // set before stopped is closed
}

// A request is one append on its way to the disk.
type request struct {
	prepared
	// state decides a race: between the writer, which takes the request, and
	// its caller, which gives up.
	state atomic.Int32
	done  chan error // has room for the one answer
	seq   int64      // valid once done has delivered nil
}

// The states of a request.
const (
	requestQueued = iota
	requestTaken
	requestAbandoned
)

// A command is work for the writer goroutine other than appending.
type command struct {
	run func(*writer) error
	// always is true for what a broken log can do as well.
	always bool
	done   chan error
}

// newLog joins the parts of a log; start sets it going.
func newLog(w *writer, reader *Reader, recovery Recovery) *Log {
	return &Log{
		Reader: reader, writer: w, recovery: recovery,
		publisher: newPublisher(w.path, reader, &w.options),
		queue:     make(chan *request, w.options.MaxPending),
		control:   make(chan *command),
		erasing:   make(chan struct{}, 1),
		stopped:   make(chan struct{}),
	}
}

// start starts the goroutines that Close waits for.
func (l *Log) start() {
	l.publisher.start()
	go l.write()
}

// Append writes a record and returns its sequence number when it is durable.
//
// A record that the log does not take fails with [CodeInvalid] before anything
// is written. When the context is done while the record waits its turn, it is
// not written and the context's error is returned; when it is being written,
// the error has [CodeUncertain]. After any other error the record is not in the
// log, unless the error is [CodeIO], after which nobody knows before the log is
// opened again.
func (l *Log) Append(ctx context.Context, record Record) (seq int64, err error) {
	r, err := l.enqueue(ctx, &record)
	if err != nil {
		return 0, err
	}
	if err := l.await(ctx, r); err != nil {
		return 0, err
	}
	return r.seq, nil
}

// AppendAll writes records, in their order, and returns when all are durable; it
// costs less than as many calls of Append. written counts those that
// are in the log. The error is that of the first that is not, as Append says it;
// the others are written all the same, as far as they can be.
func (l *Log) AppendAll(ctx context.Context, records []Record) (written int, err error) {
	waiting := make([]*request, 0, len(records))
	for i := range records {
		r, rerr := l.enqueue(ctx, &records[i])
		if rerr != nil {
			err = cmp.Or(err, rerr)
			continue
		}
		waiting = append(waiting, r)
	}
	for _, r := range waiting {
		if rerr := l.await(ctx, r); rerr != nil {
			err = cmp.Or(err, rerr)
			continue
		}
		written++
	}
	return written, err
}

// enqueue gives a record to the writer.
func (l *Log) enqueue(ctx context.Context, record *Record) (*request, error) {
	if !record.Kind.Valid() || record.Kind.reserved() {
		return nil, &Error{Code: CodeInvalid, Path: l.path, Msg: "records of kind \"" + string(record.Kind) + "\" cannot be appended",
			Hint: "use one of the documented kinds"}
	}
	r := &request{done: make(chan error, 1)}
	if err := r.prepare(record); err != nil {
		return nil, &Error{Code: CodeInvalid, Path: l.path, Msg: "the record cannot be appended", Err: err}
	}
	return r, l.submit(ctx, r)
}

// await waits for the writer's word on a record.
func (l *Log) await(ctx context.Context, r *request) error {
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
	}
	if r.state.CompareAndSwap(requestQueued, requestAbandoned) {
		return ctx.Err()
	}
	select {
	case err := <-r.done: // it has just been decided
		return err
	default:
		return &Error{Code: CodeUncertain, Path: l.path, Msg: "gave up while the record was being written", Err: ctx.Err(),
			Hint: "query the log to see whether it is there"}
	}
}

// prepare does what can be done before the record has its place in the log.
func (p *prepared) prepare(r *Record) error {
	if r.Tenant == "" {
		r.Tenant = DefaultTenant
	}
	var err error
	if p.content, err = r.content(); err != nil {
		return err
	}
	newSalt(&p.salt)
	var scratch []byte
	p.header = chainhash.Header[string]{
		Tenant: r.Tenant, Kind: string(r.Kind),
		Digest: chainhash.Digest(&scratch, p.salt[:], &p.content),
	}
	return nil
}

// submit queues a request, blocking while the queue is full.
func (l *Log) submit(ctx context.Context, r *request) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return l.errClosed()
	}
	select {
	case l.queue <- r:
		return nil
	default:
	}
	select {
	case l.queue <- r:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// do runs a command on the writer goroutine. The context bounds the wait for
// its turn; what has begun is waited for, since it shares variables with its
// caller.
func (l *Log) do(ctx context.Context, run func(*writer) error) error {
	return l.runCommand(ctx, &command{run: run, done: make(chan error, 1)})
}

// runCommand is do for a command that is already made.
func (l *Log) runCommand(ctx context.Context, c *command) error {
	if err := l.sendCommand(ctx, c); err != nil {
		return err
	}
	return <-c.done
}

// sendCommand hands a command to the writer. Holding the lock meanwhile keeps
// Close from ending the writer under it.
func (l *Log) sendCommand(ctx context.Context, c *command) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return l.errClosed()
	}
	select {
	case l.control <- c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *Log) errClosed() error {
	return &Error{Code: CodeClosed, Path: l.path, Msg: "the log was closed"}
}

// Checkpoint signs all that is durable now and returns the signed checkpoint,
// or nil for an empty log.
func (l *Log) Checkpoint(ctx context.Context) (signed []byte, err error) {
	err = l.do(ctx, func(w *writer) error {
		err := w.signRest()
		signed = w.tip.note
		return err
	})
	return signed, err
}

// Status is the state of the log's duties beside appending.
type Status struct {
	// Broken is the error after which the log takes no more records, or nil.
	Broken error
	// Records is the number of the newest durable record, Signed that of the
	// newest under a checkpoint.
	Records, Signed int64
	// CheckpointFile is the error of the last write of the checkpoint file.
	CheckpointFile error
	// Witnesses tells for each witness asked so far whether it has co-signed.
	// An error that is [checkpoint.ErrInconsistent] means that the witness has
	// seen another history of this log.
	Witnesses map[string]error
}

// Status tells how the log is doing.
func (l *Log) Status(ctx context.Context) (Status, error) {
	c := &command{done: make(chan error, 1)}
	var s Status
	c.run = func(w *writer) error {
		s.Broken, s.Records, s.Signed = w.broken, w.tip.seq, w.tip.signed
		return nil
	}
	c.always = true
	if err := l.runCommand(ctx, c); err != nil {
		return Status{}, err
	}
	s.Witnesses, s.CheckpointFile = l.publisher.status()
	return s, nil
}

// Close writes what is queued, signs a last checkpoint and closes the log.
// Further appends fail with [CodeClosed]. The error tells whether the last
// checkpoint could not be made; records acknowledged before are durable in any
// case. Closing again returns the same error.
func (l *Log) Close() error {
	l.closeOnce.Do(func() {
		l.mu.Lock()
		l.closed = true
		l.mu.Unlock()
		close(l.queue)
	})
	<-l.stopped
	return l.closeErr
}

// Recovery is what [Open] found.
type Recovery struct {
	// Created is true for a log that did not exist before.
	Created bool
	// Records is the number of the newest record, 0 in an empty log.
	Records int64
	// Unsigned counts the records after the newest checkpoint: more than 0
	// means that the log was not closed the last time. They were checked and are
	// now signed.
	Unsigned int64
	// Resumed counts the records whose erasure or removal was authorised but
	// interrupted, and that are now erased or removed.
	Resumed int64
	// KeyChanged is true when an interrupted change of the signing key was
	// completed, or a lost key replaced.
	KeyChanged bool
}

// Recovery tells what [Open] found.
func (l *Log) Recovery() Recovery { return l.recovery }
