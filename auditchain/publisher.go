package auditchain

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/agentd/agentd/auditchain/checkpoint"
)

// witnessTimeout bounds the wait for one witness.
const witnessTimeout = 5 * time.Second

// A publisher brings checkpoints out of the database: into the file beside it
// and to the witnesses. It works beside the writer, which it never delays; of
// checkpoints that pile up only the newest is published.
type publisher struct {
	path      string
	reader    *Reader
	witnesses []checkpoint.Witness

	newest chan []byte // holds at most one
	done   chan struct{}
	last   []byte // what the writer handed over last; belongs to the writer

	mu        sync.Mutex
	published []byte           // guarded by mu
	fileErr   error            // guarded by mu
	witnessed map[string]error // by name of the witness, guarded by mu
}

func newPublisher(path string, reader *Reader, witnesses []checkpoint.Witness) *publisher {
	return &publisher{
		path: path, reader: reader, witnesses: witnesses,
		newest: make(chan []byte, 1), done: make(chan struct{}), witnessed: map[string]error{},
	}
}

// start starts the goroutine that stop waits for.
func (p *publisher) start() {
	go func() {
		defer close(p.done)
		for note := range p.newest {
			p.publishNow(note)
		}
	}()
}

// publish hands a note over. Only the writer calls it.
func (p *publisher) publish(note []byte) {
	if note == nil || bytes.Equal(note, p.last) {
		return
	}
	p.last = note
	select {
	case <-p.newest: // overtaken
	default:
	}
	p.newest <- note // has room: nobody else sends
}

// stop publishes what was handed over and reports whether the newest
// checkpoint is in its file.
func (p *publisher) stop() error {
	close(p.newest)
	<-p.done
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fileErr
}

// status is the outcome of the newest attempts.
func (p *publisher) status() (witnesses map[string]error, file error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.witnessed), p.fileErr
}

// publishNow writes the file and asks the witnesses. It returns when all have
// answered or their time is up.
func (p *publisher) publishNow(note []byte) {
	err := replaceFile(p.path+checkpointSuffix, note, 0o644)
	p.mu.Lock()
	p.published, p.fileErr = note, err
	p.mu.Unlock()
	// All at once: one that does not answer delays no other.
	var asked sync.WaitGroup
	for _, w := range p.witnesses {
		asked.Go(func() {
			err := p.show(w, note)
			p.mu.Lock()
			defer p.mu.Unlock()
			p.witnessed[w.Name()] = err
		})
	}
	asked.Wait()
}

// show brings a witness up to date.
func (p *publisher) show(w checkpoint.Witness, note []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), witnessTimeout)
	defer cancel()
	cosigned, err := p.reader.cosign(ctx, w, note)
	if err != nil {
		return fmt.Errorf("witness %s: %w", w.Name(), err)
	}
	if err := p.keepCosigned(cosigned); err != nil {
		return fmt.Errorf("witness %s: its answer: %w", w.Name(), err)
	}
	return nil
}

// keepCosigned replaces the checkpoint file by its co-signed form, if it still
// holds that checkpoint, adding to the signatures of other witnesses. A witness
// is not trusted: what would make the file worthless is not kept.
func (p *publisher) keepCosigned(cosigned []byte) error {
	public, err := p.reader.PublicKeys()
	if err != nil {
		return err
	}
	keys, err := checkpoint.NewKeys(public...)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	merged, err := checkpoint.Merge(p.published, cosigned)
	if err != nil {
		return err
	}
	if _, err := checkpoint.Open(merged, keys); err != nil {
		return err
	}
	if err := replaceFile(p.path+checkpointSuffix, merged, 0o644); err != nil {
		return err
	}
	p.published = merged
	return nil
}
