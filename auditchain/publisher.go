package auditchain

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
)

const (
	// witnessTimeout bounds the wait for one witness.
	witnessTimeout = 5 * time.Second
	// Between these, doubling, is the wait before a witness that has not co-signed
	// is asked again. A new checkpoint does not wait.
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// A publisher brings checkpoints out of the database: into the file beside it
// and to the witnesses. It works beside the writer, which it never delays; of
// checkpoints that pile up only the newest is published.
type publisher struct {
	path      string
	reader    *Reader
	onWitness func(name string, err error) // may be nil

	newest chan []byte   // holds at most one
	joined chan struct{} // holds a token after a witness was added
	done   chan struct{}
	last   []byte // what the writer handed over last; belongs to the writer

	mu        sync.Mutex
	witnesses []checkpoint.Witness // guarded by mu
	published []byte               // guarded by mu
	fileErr   error                // guarded by mu
	witnessed map[string]error     // by name of the witness, guarded by mu
}

func newPublisher(path string, reader *Reader, options *Options) *publisher {
	return &publisher{
		path: path, reader: reader, witnesses: slices.Clone(options.Witnesses), onWitness: options.OnWitness,
		newest: make(chan []byte, 1), joined: make(chan struct{}, 1), done: make(chan struct{}),
		witnessed: map[string]error{},
	}
}

// start starts the goroutine that stop waits for.
func (p *publisher) start() { go p.run() }

// run publishes until newest is closed. What a witness has not co-signed it is
// shown again, later and later.
func (p *publisher) run() {
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
			p.publishNow(note)
			wait = firstRetry
		case <-p.joined:
			p.askAgain()
		case <-retry.C:
			p.askAgain()
			wait = min(2*wait, lastRetry)
		}
		if len(p.behind()) > 0 {
			retry.Reset(wait)
		} else {
			retry.Stop()
		}
	}
}

// add adds a witness and has it asked soon.
func (p *publisher) add(w checkpoint.Witness) {
	p.mu.Lock()
	p.witnesses = append(p.witnesses, w)
	p.mu.Unlock()
	select {
	case p.joined <- struct{}{}:
	default: // it is told already
	}
}

// behind lists the witnesses that have not co-signed what was published last.
func (p *publisher) behind() []checkpoint.Witness {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.published == nil {
		return nil
	}
	var all []checkpoint.Witness
	for _, w := range p.witnesses {
		if err, asked := p.witnessed[w.Name()]; !asked || err != nil {
			all = append(all, w)
		}
	}
	return all
}

// askAgain shows what was published last to the witnesses that are behind.
func (p *publisher) askAgain() {
	p.mu.Lock()
	note := p.published
	p.mu.Unlock()
	p.ask(p.behind(), note)
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
	witnesses := slices.Clone(p.witnesses)
	p.mu.Unlock()
	p.ask(witnesses, note)
}

// ask shows a note to witnesses, all at once: one that does not answer delays no
// other. Whoever wants to know is told when the answer of one is another than
// before.
func (p *publisher) ask(witnesses []checkpoint.Witness, note []byte) {
	var asked sync.WaitGroup
	for _, w := range witnesses {
		asked.Go(func() {
			err := p.show(w, note)
			p.mu.Lock()
			before, known := p.witnessed[w.Name()]
			p.witnessed[w.Name()] = err
			p.mu.Unlock()
			if p.onWitness != nil && (!known || classOfWitness(before) != classOfWitness(err)) {
				p.onWitness(w.Name(), err)
			}
		})
	}
	asked.Wait()
}

// classOfWitness tells apart what a witness may say: yes, that it has seen
// another history, and nothing of use.
func classOfWitness(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, checkpoint.ErrInconsistent):
		return 1
	}
	return 2
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
