package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/sidecar"
	"github.com/agentd/agentd/auditchain/internal/store"
)

const (
	// witnessTimeout bounds the wait for one witness.
	witnessTimeout = 5 * time.Second
	// The wait before a witness that has not co-signed is asked again doubles
	// from firstRetry to lastRetry. A new checkpoint does not wait.
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// A Publisher publishes the checkpoints of one log. Of checkpoints that pile up
// while it waits for a witness, it publishes only the newest, which covers the
// others.
type Publisher struct {
	db        *store.DB
	onWitness func(name string, err error) // may be nil

	newest chan []byte   // holds at most one note
	joined chan struct{} // holds a token after a witness was added
	done   chan struct{} // closed when run has returned
	last   []byte        // the note published last; belongs to the caller of Publish

	mu        sync.Mutex
	witnesses []checkpoint.Witness // guarded by mu
	published []byte               // the content of the checkpoint file; guarded by mu
	fileErr   error                // of the last write of that file; guarded by mu
	outcomes  map[string]error     // by name of the witness; guarded by mu
}

// New returns a publisher. The function onWitness, if not nil, is called if the
// answer of a witness differs in kind from the one before.
func New(db *store.DB, witnesses []checkpoint.Witness, onWitness func(name string, err error)) *Publisher {
	return &Publisher{
		db: db, witnesses: slices.Clone(witnesses), onWitness: onWitness,
		newest: make(chan []byte, 1), joined: make(chan struct{}, 1), done: make(chan struct{}),
		outcomes: map[string]error{},
	}
}

// Start starts the goroutine that Stop waits for.
func (p *Publisher) Start() { go p.run() }

// Publish hands over a note, which may be nil or the same as before. It does not
// block. It must not be called concurrently.
func (p *Publisher) Publish(note []byte) {
	if note == nil || bytes.Equal(note, p.last) {
		return
	}
	p.last = note
	select {
	case <-p.newest: // superseded
	default:
	}
	p.newest <- note // has room: there is no other sender
}

// AddWitness adds a witness and shows it the newest checkpoint soon.
func (p *Publisher) AddWitness(w checkpoint.Witness) {
	p.mu.Lock()
	p.witnesses = append(p.witnesses, w)
	p.mu.Unlock()
	select {
	case p.joined <- struct{}{}:
	default: // a token for an earlier witness is still there
	}
}

// Stop publishes the note handed over last, and returns the error of writing it
// to its file.
func (p *Publisher) Stop() error {
	close(p.newest)
	<-p.done
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fileErr
}

// Status returns the outcome of the newest attempt for each witness, and for the
// checkpoint file.
func (p *Publisher) Status() (witnesses map[string]error, file error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.outcomes), p.fileErr
}

// run publishes until newest is closed. What has failed is tried again at growing
// intervals: the file, and the witnesses that have not co-signed.
func (p *Publisher) run() {
	defer close(p.done)
	wait := firstRetry
	retry := time.NewTimer(wait)
	retry.Stop()
	defer retry.Stop()
	for {
		select {
		case note, open := <-p.newest:
			if !open {
				return
			}
			p.publish(note)
			wait = firstRetry
		case <-p.joined:
			p.retryWitnesses()
		case <-retry.C:
			p.retryFile()
			p.retryWitnesses()
			wait = min(2*wait, lastRetry)
		}
		if len(p.behind()) > 0 || p.unwritten() {
			retry.Reset(wait)
		} else {
			retry.Stop()
		}
	}
}

// publish writes the file and asks all witnesses. It returns when all have
// answered or their time is up.
func (p *Publisher) publish(note []byte) {
	err := sidecar.WriteCheckpoint(p.db.Path, note)
	p.mu.Lock()
	p.published, p.fileErr = note, err
	witnesses := slices.Clone(p.witnesses)
	p.mu.Unlock()
	p.showAll(witnesses, note)
}

// unwritten reports whether the newest checkpoint is missing from its file.
func (p *Publisher) unwritten() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fileErr != nil
}

// retryFile writes the checkpoint published last to its file, if that has failed.
func (p *Publisher) retryFile() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fileErr != nil {
		p.fileErr = sidecar.WriteCheckpoint(p.db.Path, p.published)
	}
}

// retryWitnesses shows the checkpoint published last to the witnesses that are
// behind.
func (p *Publisher) retryWitnesses() {
	p.mu.Lock()
	note := p.published
	p.mu.Unlock()
	p.showAll(p.behind(), note)
}

// behind returns the witnesses that have not co-signed the checkpoint published
// last.
func (p *Publisher) behind() []checkpoint.Witness {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.published == nil {
		return nil
	}
	var all []checkpoint.Witness
	for _, w := range p.witnesses {
		if err, asked := p.outcomes[w.Name()]; !asked || err != nil {
			all = append(all, w)
		}
	}
	return all
}

// showAll shows a note to witnesses, all at the same time, so that one that does
// not answer delays no other.
func (p *Publisher) showAll(witnesses []checkpoint.Witness, note []byte) {
	var all sync.WaitGroup
	for _, w := range witnesses {
		all.Go(func() {
			err := p.show(w, note)
			p.mu.Lock()
			before, known := p.outcomes[w.Name()]
			p.outcomes[w.Name()] = err
			p.mu.Unlock()
			if p.onWitness != nil && (!known || classify(before) != classify(err)) {
				p.onWitness(w.Name(), err)
			}
		})
	}
	all.Wait()
}

// show shows a note to one witness and keeps its signature.
func (p *Publisher) show(w checkpoint.Witness, note []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), witnessTimeout)
	defer cancel()
	cosigned, err := cosign(ctx, p.db, w, note)
	if err != nil {
		return fmt.Errorf("witness %s: %w", w.Name(), err)
	}
	if err := p.keep(cosigned); err != nil {
		return fmt.Errorf("witness %s: its answer: %w", w.Name(), err)
	}
	return nil
}

// keep adds the signature of a witness to the checkpoint file. It fails if the
// file holds a newer checkpoint by now.
func (p *Publisher) keep(cosigned []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	merged, err := mergeCosigned(p.db, p.published, cosigned)
	if err != nil {
		return err
	}
	if err := sidecar.WriteCheckpoint(p.db.Path, merged); err != nil {
		return err
	}
	p.published = merged
	return nil
}

// An outcomeClass is a kind of answer from a witness.
type outcomeClass uint8

const (
	cosigned    outcomeClass = iota
	conflicting              // the witness has seen another history of the log
	unavailable              // no answer, or a useless one
)

func classify(err error) outcomeClass {
	switch {
	case err == nil:
		return cosigned
	case errors.Is(err, checkpoint.ErrInconsistent):
		return conflicting
	}
	return unavailable
}
