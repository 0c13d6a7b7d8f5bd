package auditchain

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/chain"
	"github.com/agentd/agentd/auditchain/internal/erase"
	"github.com/agentd/agentd/auditchain/internal/publish"
	"github.com/agentd/agentd/auditchain/internal/record"
	"github.com/agentd/agentd/auditchain/internal/store"
)

// A Log is an audit log that is open for writing. Its methods are safe for
// concurrent use. The methods of its [Reader] read what is durable.
type Log struct {
	*Reader
	writer    *chain.Writer // belongs to the goroutine that runs write
	recovery  Recovery
	publisher *publish.Publisher
	eraser    *erase.Eraser

	checkpointInterval time.Duration
	queue              chan *pendingAppend
	control            chan *command
	stopped            chan struct{} // closed when write has returned
	signing            error         // of the last checkpoint that was due; the goroutine's that runs write
	scratch            sync.Pool     // of *batchScratch

	// finishing is the work on erasures that were interrupted, and completing counts it.
	finishing  sync.WaitGroup
	completing atomic.Int32
	// unfinished is the error that holds that work up, or nil.
	unfinished atomic.Pointer[error]
	closing    chan struct{} // closed when Close begins

	mu     sync.RWMutex // held for reading while sending to queue or control
	closed bool         // guarded by mu

	closeOnce sync.Once
	final     *record.Prepared // from CloseWith, or nil; set before queue is closed
	closeErr  error            // set before stopped is closed
}

// Open opens the log at path for writing, and creates database and signing key if
// there is no database. The folder must exist.
//
// Open checks that the database has all that the newest checkpoint covers, in it or in
// the file beside it, and that the records after that are such as a crash leaves: at
// most 4095, none of the log's own kinds, and none after [Log.CloseWith]. A log that
// fails is not opened: nothing is signed that was not written here, and nothing is
// done that an unsigned record asks for. [Quarantine] makes it usable again.
// [Log.Recovery] returns what Open found. Errors are [*Error] with [CodeLocked], [CodeRollback], [CodeTampered],
// [CodeKeyMissing], and those of the file system.
func Open(ctx context.Context, path string, options Options) (*Log, error) {
	return open(ctx, path, options, store.SQLite)
}

// open is Open with the driver to use.
func open(ctx context.Context, path string, options Options, connect store.Connect) (*Log, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	w, found, err := chain.Open(ctx, path, chain.Options{
		Name: options.Name, CheckpointRecords: options.CheckpointRecords, ReplaceLostKey: options.ReplaceLostKey,
		Now: options.Now, Elapsed: options.elapsed,
	}, connect)
	if err != nil {
		return nil, err
	}
	resumed, more, err := erase.Resume(ctx, w)
	var reader *store.Reader
	if err == nil {
		reader, err = store.OpenReader(ctx, w.DB().Path, connect)
	}
	if err != nil {
		_ = w.Close() // err is what matters
		return nil, err
	}
	l := &Log{
		Reader: &Reader{db: reader}, writer: w,
		recovery: Recovery{
			Created: found.Created, Records: found.Records, Unsigned: found.Unsigned, KeyChanged: found.KeyChanged, Resumed: resumed, Resuming: more,
			KeysMissing: found.KeysMissing, CheckpointMissing: found.CheckpointMissing,
		},
		publisher:          publish.New(&reader.DB, options.Witnesses, options.OnWitness),
		checkpointInterval: options.CheckpointInterval,
		queue:              make(chan *pendingAppend, options.MaxPending),
		control:            make(chan *command),
		stopped:            make(chan struct{}),
		closing:            make(chan struct{}),
	}
	l.eraser = erase.New(&reader.DB, l.do, func() (*store.Flusher, error) { return store.OpenFlusher(reader.Path, connect) })
	l.publisher.Start()
	go l.write()
	if more {
		l.finishErasure(nil)
	}
	return l, nil
}

// Close writes the queued records, signs a last checkpoint and closes the log.
// Further appends fail with [CodeClosed]. An error means that the last checkpoint
// could not be made; acknowledged records are durable in any case. Closing again
// returns the same error.
func (l *Log) Close() error { return l.close(nil) }

// CloseWith is Close with a last record, of kind [KindLifecycle], which seals the log:
// the next [Open] accepts no unsigned record after it. The log adds the member sealed to
// its body.
func (l *Log) CloseWith(last Record) error {
	final := &record.Prepared{}
	if err := final.PrepareSealed(&last); err != nil {
		return errors.Join(&Error{Code: CodeInvalid, Path: l.db.Path, Msg: "the last record", Err: err}, l.close(nil))
	}
	return l.close(final)
}

func (l *Log) close(final *record.Prepared) error {
	l.closeOnce.Do(func() {
		l.mu.Lock()
		l.closed = true
		l.mu.Unlock()
		close(l.closing)
		l.final = final
		close(l.queue)
	})
	<-l.stopped
	return l.closeErr
}

// Append writes a record and returns its sequence number once it is durable.
//
// A record that the log rejects fails with [CodeInvalid] before anything is
// written. If the context ends while the record waits its turn, the record is not
// written and the context's error is returned; if it ends while the record is
// being written, the error has [CodeUncertain]. After any other error the record
// is not in the log, except after [CodeIO]: then nobody knows before the log is
// opened again, by [Log.Reopen] or the next start.
func (l *Log) Append(ctx context.Context, record Record) (seq int64, err error) {
	prepared := make([]prepared, 1)
	if err := l.prepare(&preparer{}, &prepared[0], &record); err != nil {
		return 0, err
	}
	if err := l.append(ctx, prepared); err != nil {
		return 0, err
	}
	return prepared[0].Header.Seq, nil
}

type (
	prepared = record.Prepared
	preparer = record.Preparer
)

// append hands records to the writer and waits for them.
func (l *Log) append(ctx context.Context, records []prepared) error {
	r, err := l.enqueue(ctx, records)
	if err != nil {
		return err
	}
	return l.await(ctx, r)
}

// AppendAll writes records, in their order, and returns when all are durable; it
// costs less than as many calls of Append. The result counts those that are in
// the log. The error is that of the first record that is not, as Append returns
// it, but [CodeInvalid] only if that is the one reason: what the log itself has met
// concerns all records. The others are written nevertheless, as far as possible.
func (l *Log) AppendAll(ctx context.Context, records []Record) (written int, err error) {
	scratch, _ := l.scratch.Get().(*batchScratch)
	if scratch == nil {
		scratch = &batchScratch{}
	}
	batch, pr := slices.Grow(scratch.batch, min(len(records), maxBatch)), &scratch.preparer
	size := 0
	write := func() {
		if len(batch) == 0 {
			return
		}
		werr := l.append(ctx, batch)
		if werr == nil {
			written += len(batch)
			clear(batch) // nothing keeps what the records say
			batch, size = batch[:0], 0
			return
		}
		if err == nil || CodeOf(err) == CodeInvalid {
			err = werr
		}
		batch, size = make([]prepared, 0, cap(batch)), 0 // the writer may still read the other one
	}
	for i := range records {
		batch = batch[:len(batch)+1]
		p := &batch[len(batch)-1]
		if perr := l.prepare(pr, p, &records[i]); perr != nil {
			err = cmp.Or(err, perr)
			batch = batch[:len(batch)-1]
			continue
		}
		if size += len(p.Content.Body); len(batch) == maxBatch || size >= maxBatchBytes {
			write()
		}
	}
	write()
	clear(batch[:cap(batch)])
	scratch.batch = batch[:0]
	l.scratch.Put(scratch)
	return written, err
}

// A batchScratch is the memory of one call of AppendAll, for the next ones.
type batchScratch struct {
	batch    []prepared
	preparer preparer
}

// Checkpoint signs all that is durable now and returns the signed checkpoint, or
// nil for an empty log.
func (l *Log) Checkpoint(ctx context.Context) (signed []byte, err error) {
	err = l.do(ctx, func(w *chain.Writer) error {
		l.signing = w.Sign()
		signed = w.Head().Note
		return l.signing
	})
	return signed, err
}

// RotateKey generates a new signing key and returns its verifier key. The change
// is a record, and the checkpoint that covers it is the last one signed with the
// old key: whoever trusts the old key can follow to the new one. Old verifier
// keys stay in the file of public keys; the old private key is removed. The record names
// the actor of the context, see [WithActor].
func (l *Log) RotateKey(ctx context.Context) (verifier string, err error) {
	err = l.do(ctx, func(w *chain.Writer) (err error) {
		verifier, err = w.RotateKey(record.ActorOf(ctx))
		return err
	})
	return verifier, err
}

// An Erasure is the outcome of [Log.Redact] and [Log.Prune].
type Erasure = erase.Result

// Redact erases the content of the records that the filter chooses: body, salt
// and searchable columns. Number, time, tenant, kind and hashes stay, and the
// chain still verifies. It cannot be undone; copies of the database made before
// still hold the content.
//
// A redaction record with the reason and the numbers of the records is written
// and signed first; it names the searched columns but not the values, which may
// be the very data to erase. It names the actor of the context, see [WithActor]. From there on
// the redaction is completed: if it fails, or the context ends, the log goes on with it by
// itself ([Status.Erasure]), as the next erasure and the next [Open] do.
//
// A filter that chooses everything is rejected, as is an empty reason. Records
// of the log's own kinds stay as they are. Limit and Order are ignored.
func (l *Log) Redact(ctx context.Context, filter Filter, reason string) (Erasure, error) {
	done, err := l.eraser.Redact(ctx, filter, reason)
	return done, l.erased(done, err)
}

// Prune removes the records written before a time. Their hashes stay in the
// Merkle tree, some 50 bytes each, so that the rest still verifies against old
// checkpoints. The records of changed signing keys stay as well. It cannot be
// undone.
//
// A prune record, with the actor of the context, is written and signed first, see
// [WithActor]. Then the records go in small transactions, between which appends have their
// turn, and the file becomes smaller. It is completed as a redaction is.
func (l *Log) Prune(ctx context.Context, before time.Time, reason string) (Erasure, error) {
	done, err := l.eraser.Prune(ctx, before, reason)
	return done, l.erased(done, err)
}

// erased takes the outcome of an erasure, and returns its error.
func (l *Log) erased(done Erasure, err error) error {
	switch {
	case err == nil:
		l.unfinished.Store(nil) // it has completed all that came before it
	case len(done.Records) > 0:
		l.finishErasure(err)
	}
	return err
}

// finishPause is how long the log waits before it tries again to complete an erasure, at
// first; each further pause is twice as long, up to maxFinishPause.
const (
	finishPause    = 5 * time.Second
	maxFinishPause = time.Minute
)

// finishErasure completes an interrupted erasure beside the appends: one that a start has
// found too long to complete before the first of them, or one that has failed just now.
// Closing the log interrupts it: the next start goes on.
//
// It must not run in the writer's goroutine: it waits for the lock that Close waits for.
func (l *Log) finishErasure(failed error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return
	}
	if failed != nil {
		l.unfinished.Store(&failed)
	}
	l.completing.Add(1)
	l.finishing.Go(func() {
		defer l.completing.Add(-1)
		for err, pause := failed, finishPause; ; pause = min(2*pause, maxFinishPause) {
			if err != nil {
				select {
				case <-time.After(pause):
				case <-l.closing:
					return
				}
			}
			if _, err = l.eraser.Finish(context.Background()); err == nil {
				l.unfinished.Store(nil)
				return
			}
			l.unfinished.Store(&err)
		}
	})
}

// AddWitness adds a witness to those of [Options]. It is shown the newest
// checkpoint soon.
func (l *Log) AddWitness(w checkpoint.Witness) { l.publisher.AddWitness(w) }

// Keeper makes this log's owner a witness of other logs, which signs with the key
// of this one, also after that has changed. For store and trust see
// [checkpoint.NewKeeper].
func (l *Log) Keeper(store checkpoint.Store, trust func(origin string) []string) *checkpoint.Keeper {
	k := checkpoint.NewKeeper(l.writer.SigningKey, store, trust)
	k.OwnKeys(l.PublicKeys)
	return k
}
