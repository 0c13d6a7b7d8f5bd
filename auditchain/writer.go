package auditchain

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/chainhash"
	"golang.org/x/mod/sumdb/tlog"
)

const (
	// maxBatch bounds the records of one transaction.
	maxBatch = 1024
	// maxBatchBytes bounds their bodies.
	maxBatchBytes = 8 << 20
	// gatherYields is how often the writer lets others run before it commits a
	// batch that has stopped growing, if the one before was shared. Callers whose
	// records that one has just made durable thus get into the next batch, not
	// the one after it.
	gatherYields = 2
	// clockStep is by how much the clock must fall behind the newest record to
	// be noted in the log. Less is what clock synchronisation does every day.
	clockStep = time.Second
)

// A writer owns the connection that writes, and the state of the chain. After
// start it belongs to one goroutine.
type writer struct {
	path       string
	options    Options
	db         *sql.DB
	conn       *sql.Conn
	statements statements
	identity   identity
	key        *checkpoint.Key
	// signingKey is key, for other goroutines.
	signingKey atomic.Pointer[checkpoint.Key]

	// created is true when Open made the log.
	created bool
	// tip is the state as committed.
	tip tip
	// files are the database and its write-ahead log as the first commit left
	// them.
	files [2]os.FileInfo
	// clockBehind is true while the clock is behind the newest record.
	clockBehind bool
	// broken is the error after which nothing more is written.
	broken error

	scratch []byte
}

// A tip is the end of the chain.
type tip struct {
	seq  int64
	time int64 // Unix milliseconds of the newest record
	hash tlog.Hash
	tree frontier
	// signed is the size of the newest checkpoint, note its text.
	signed int64
	note   []byte
}

// clone is a tip that can move on while this one stays.
func (t tip) clone() tip {
	t.tree = t.tree.clone()
	return t
}

// write is the writer goroutine.
func (l *Log) write() {
	w := l.writer
	shared := false // whether the last batch had several callers
	ticker := time.NewTicker(l.writer.options.CheckpointInterval)
	defer ticker.Stop()
	for open := true; open; {
		select {
		case r, ok := <-l.queue:
			if open = ok; ok {
				batch := l.gather(r, shared)
				shared = len(batch) > 1
				w.appendBatch(batch)
			}
		case c := <-l.control:
			c.done <- w.runCommand(c)
		case <-ticker.C:
			// A failure shows at the next append, and in what Verify says
			// about unsigned records.
			_ = w.signRest()
		}
		l.publisher.publish(w.tip.note)
	}
	err := w.signRest()
	l.publisher.publish(w.tip.note)
	err = errors.Join(err, l.publisher.stop(), l.Reader.Close(), w.disconnect())
	l.lock.Release()
	l.closeErr = err
	close(l.stopped)
}

// gather collects the requests of one transaction. If it may linger, it lets
// those run who are about to make another.
func (l *Log) gather(first *request, linger bool) []*request {
	batch := []*request{}
	size, yields := 0, 0
	if !linger {
		yields = gatherYields
	}
	add := func(r *request) {
		if r.state.CompareAndSwap(requestQueued, requestTaken) {
			batch = append(batch, r)
			size += len(r.content.Body)
		}
	}
	add(first)
	for len(batch) < maxBatch && size < maxBatchBytes && yields <= gatherYields {
		select {
		case r, ok := <-l.queue:
			if !ok {
				return batch
			}
			add(r)
		default:
			if yields++; yields <= gatherYields {
				runtime.Gosched()
			}
		}
	}
	return batch
}

// appendBatch writes a batch in one transaction and answers its requests.
func (w *writer) appendBatch(batch []*request) {
	if len(batch) == 0 {
		return
	}
	err := w.commit(func(next *tip) error {
		if err := w.noteClock(next); err != nil {
			return err
		}
		for _, r := range batch {
			if err := w.insert(next, &r.prepared); err != nil {
				return err
			}
			r.seq = next.seq
		}
		return nil
	})
	for _, r := range batch {
		r.done <- err
	}
}

// commit runs change in a transaction and makes it durable. The chain moves on
// to the tip that change leaves only if all went well.
func (w *writer) commit(change func(next *tip) error) error {
	if w.broken != nil {
		return w.broken
	}
	next := w.tip.clone()
	if err := w.statements.run(w.statements.begin); err != nil {
		return w.rollback(err)
	}
	err := change(&next)
	if err == nil && next.seq-next.signed >= w.options.CheckpointRecords {
		err = w.sign(&next, w.key)
	}
	if err == nil {
		err = w.statements.run(w.statements.commit)
	}
	if err != nil {
		return w.rollback(err)
	}
	if err := w.checkFiles(); err != nil {
		w.broken = err
		return err
	}
	w.tip = next
	return nil
}

// rollback undoes a failed transaction. When the failure leaves it unknown
// what the file holds, the log is closed to writing.
func (w *writer) rollback(cause error) error {
	err := fault(w.path, "writing", cause)
	rollbackErr := w.exec("ROLLBACK")
	var seq sql.NullInt64
	readErr := w.conn.QueryRowContext(context.Background(), `SELECT max(seq) FROM records`).Scan(&seq)
	switch CodeOf(err) {
	case CodeFull, CodeBusy, CodeReadOnly, CodeInvalid:
		// SQLite itself rolls back after some of these, and ROLLBACK then fails.
		// What counts is that the database stands where the chain does.
		if readErr == nil && seq.Int64 == w.tip.seq {
			return err
		}
	}
	w.broken = err
	return errors.Join(err, rollbackErr, fault(w.path, "reading after a failed write", readErr))
}

func (w *writer) exec(statement string) error {
	_, err := w.conn.ExecContext(context.Background(), statement)
	return err
}

// checkFiles makes sure that the transaction just committed went into the
// files that the next start will read. SQLite goes on writing into
// deleted or replaced files without complaint.
func (w *writer) checkFiles() error {
	for i, suffix := range []string{"", "-wal"} {
		info, err := os.Stat(w.path + suffix)
		if err == nil && w.files[i] == nil {
			w.files[i] = info
		}
		if err != nil || !os.SameFile(info, w.files[i]) {
			return &Error{Code: CodeIO, Path: w.path, Err: err,
				Msg:  "the file " + w.path + suffix + " was deleted or replaced while the log was open",
				Hint: "leave the files of an open log alone; open it again and verify it: records since the last start may be lost"}
		}
	}
	return nil
}

// now is the time for the next record: the clock's, or that of the newest
// record where the clock is behind it.
func (w *writer) now(t *tip) int64 { return max(t.time, w.options.Now().UnixMilli()) }

// noteClock writes a lifecycle record when the clock has stepped back. The
// records that follow keep the time of the newest until the clock is there.
func (w *writer) noteClock(next *tip) error {
	now := w.options.Now().UnixMilli()
	behind := next.seq > 0 && now < next.time
	stepped := behind && !w.clockBehind && next.time-now >= clockStep.Milliseconds()
	if !behind {
		w.clockBehind = false
	}
	if !stepped {
		return nil
	}
	w.clockBehind = true
	return w.insertOwn(next, KindLifecycle, map[string]any{
		"event": "clock-stepped-back", "clock": now, "newest": next.time,
	})
}

// insertOwn appends a record that the log itself makes.
func (w *writer) insertOwn(next *tip, kind Kind, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	var p prepared
	if err := p.prepare(&Record{Kind: kind, Body: text}); err != nil {
		return err
	}
	return w.insert(next, &p)
}

// insert chains a record to the tip and writes its row.
func (w *writer) insert(next *tip, p *prepared) error {
	p.header.Seq, p.header.Time = next.seq+1, w.now(next)
	hash := chainhash.Record(&w.scratch, next.hash, &p.header)
	if err := w.statements.insertRecord(p, hash); err != nil {
		return err
	}
	next.seq, next.time, next.hash = p.header.Seq, p.header.Time, hash
	var err error
	next.tree.add(hash, func(level int, position int64, hash tlog.Hash) {
		if err == nil {
			_, err = w.conn.ExecContext(context.Background(),
				`INSERT INTO tree (level, position, hash) VALUES (?, ?, ?)`, level, position, hash[:])
		}
	})
	return err
}

// runCommand runs a command unless the log is broken.
func (w *writer) runCommand(c *command) error {
	if w.broken != nil && !c.always {
		return w.broken
	}
	return c.run(w)
}

// sign adds a checkpoint over all records to the transaction.
func (w *writer) sign(next *tip, key *checkpoint.Key) error {
	c := checkpoint.Checkpoint{Origin: w.identity.origin, Size: next.seq, Root: next.tree.root()}
	note, err := checkpoint.Sign(c, key.Signer())
	if err != nil {
		return err
	}
	_, err = w.conn.ExecContext(context.Background(), `INSERT OR REPLACE INTO checkpoints (size, ts, note) VALUES (?, ?, ?)`,
		next.seq, w.now(next), string(note))
	next.signed, next.note = next.seq, note
	return err
}

// signRest makes a checkpoint if there are records without one.
func (w *writer) signRest() error {
	if w.tip.seq == w.tip.signed {
		return nil
	}
	return w.commit(func(next *tip) error { return w.sign(next, w.key) })
}

// newSalt fills a salt with random bytes.
func newSalt(salt *[chainhash.SaltSize]byte) {
	rand.Read(salt[:]) // never fails (crypto/rand)
}
