package once

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentd/agentd/rpc/callee"
)

const (
	// renewals is how often a claim is renewed within its lease.
	renewals = 4
	// renewedAtOnce is how many claims are renewed side by side: one after another, many
	// claims on a distant server would take longer than a lease.
	renewedAtOnce = 16
)

// A claim is the entry of a request that this replica serves.
type claim struct {
	key    string
	record record

	writing  sync.Mutex // held while the entry is changed
	revision uint64     // of the entry; 0 if it may not be there; guarded by writing
	written  time.Time  // guarded by writing
	end      *ending    // nil while the request runs; guarded by writing
	lost     bool       // to another replica; guarded by writing
}

// An ending is how a request ends: an entry without a state is forgotten.
type ending struct {
	state state
	reply []byte
}

// errTakenOver is the error for a claim that this replica no longer has.
var errTakenOver = errors.New("this replica was silent for longer than its lease, and another one has taken the request over")

func (a *Answers) hold(c *claim) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held[c.key] = c
}

func (a *Answers) release(c *claim) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held[c.key] == c {
		delete(a.held, c.key)
	}
}

func (a *Answers) claimOf(key string) *claim {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.held[key]
}

// end ends a request of this replica. If the bucket fails, keep tries again: what is
// known of a request is not lost for a server that is away for a while.
func (a *Answers) end(ctx context.Context, r callee.KeyedRequest, e ending) error {
	c := a.claimOf(keyOfRequest(r))
	if c == nil {
		return &Error{Bucket: a.bucket.config.Bucket, Doing: "ending a request", Err: errNotHeld}
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	c.end = &e
	return a.settle(ctx, c)
}

// settleEarlier writes what this replica still has to write about an earlier request
// with the same key.
func (a *Answers) settleEarlier(ctx context.Context, key string) error {
	c := a.claimOf(key)
	if c == nil {
		return nil
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := a.settle(ctx, c); err != nil && !errors.Is(err, errTakenOver) {
		return err
	}
	return nil
}

// settle writes the end of a claim, and lets go of it. c.writing is held.
func (a *Answers) settle(ctx context.Context, c *claim) error {
	if c.end == nil {
		return nil
	}
	const doing = "remembering an answer"
	if c.revision == 0 {
		if there, err := a.find(ctx, c); err != nil || !there {
			return err
		}
	}
	err := a.writeEnd(ctx, c, doing)
	// An earlier try, or a renewal, may have been stored although it seemed to fail.
	if isConflict(err) {
		there, ferr := a.find(ctx, c)
		if ferr != nil || !there {
			return ferr
		}
		err = a.writeEnd(ctx, c, doing)
	}
	if isConflict(err) { // nobody else writes an entry that is this replica's
		err = &Error{Bucket: a.bucket.config.Bucket, Doing: doing, Err: err}
	}
	if err == nil {
		a.release(c)
	}
	return err
}

func (a *Answers) writeEnd(ctx context.Context, c *claim, doing string) error {
	return a.bucket.do(ctx, doing, func(ctx context.Context, kv jetstream.KeyValue, _ time.Duration) error {
		if c.end.state == "" {
			return kv.Delete(ctx, c.key, jetstream.LastRevision(c.revision))
		}
		r := c.record
		r.State, r.reply = c.end.state, c.end.reply
		value, err := a.encode(c.key, &r)
		switch {
		case err != nil:
		case c.revision == 0:
			_, err = kv.Create(ctx, c.key, value)
		default:
			_, err = kv.Update(ctx, c.key, value, c.revision)
		}
		return err
	})
}

// find looks for the entry of a claim, whose revision is not known any more. there is
// false, and the claim let go, if nothing is left to do: the end is written already, or
// nothing was to remain and the entry is gone, or it is another replica's. A claim that
// another replica has taken over is kept while the request runs. c.writing is held.
func (a *Answers) find(ctx context.Context, c *claim) (there bool, err error) {
	entry, found, err := a.read(ctx, c.key)
	takenBack := c.end != nil && c.end.state == "" // nothing took effect
	switch {
	// The bucket was emptied meanwhile: what takes effect is remembered all the same.
	case isGone(err) && !takenBack:
		c.revision = 0
		return true, nil
	case isGone(err):
		a.release(c)
		return false, nil
	case err != nil:
		return false, err
	case found.Owner != a.owner && takenBack && c.revision == 0: // it never was this replica's
		a.release(c)
		return false, nil
	case found.Owner != a.owner:
		if c.lost = true; c.end != nil {
			a.release(c)
		}
		return false, &Error{Bucket: a.bucket.config.Bucket, Doing: "looking for a claim", Err: errTakenOver}
	case found.State != claimed:
		a.release(c)
		return false, nil
	}
	c.revision = entry.Revision()
	return true, nil
}

// keep renews the claims of this replica and writes the ends that could not be written,
// until ctx ends.
func (a *Answers) keep(ctx context.Context) {
	ticker := time.NewTicker(a.lease / renewals)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		a.renewAll(ctx)
	}
}

// renewAll renews the claims, and stops when the bucket fails: the next round tries again.
func (a *Answers) renewAll(ctx context.Context) {
	all := a.claims()
	var next atomic.Int64
	var failed atomic.Bool
	var renewing sync.WaitGroup
	for range min(renewedAtOnce, len(all)) {
		renewing.Go(func() {
			for i := next.Add(1); i <= int64(len(all)) && !failed.Load(); i = next.Add(1) {
				err := a.renew(ctx, all[i-1])
				if e, ok := errors.AsType[*Error](err); ok && e.Cause != "" {
					failed.Store(true)
				}
			}
		})
	}
	renewing.Wait()
}

func (a *Answers) claims() []*claim {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make([]*claim, 0, len(a.held))
	for _, c := range a.held {
		all = append(all, c)
	}
	return all
}

// renew renews one claim, or writes its end.
func (a *Answers) renew(ctx context.Context, c *claim) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.end != nil {
		return a.settle(ctx, c)
	}
	if c.lost || time.Since(c.written) < a.lease/renewals || a.claimOf(c.key) != c {
		return nil
	}
	value, err := a.encode(c.key, &c.record)
	if err != nil {
		return err
	}
	err = a.bucket.do(ctx, "renewing a claim", func(ctx context.Context, kv jetstream.KeyValue, _ time.Duration) (err error) {
		revision := c.revision
		if revision == 0 {
			revision, err = kv.Create(ctx, c.key, value)
		} else {
			revision, err = kv.Update(ctx, c.key, value, revision)
		}
		if err == nil {
			c.revision = revision
		}
		return err
	})
	if isConflict(err) {
		if _, err = a.find(ctx, c); errors.Is(err, errTakenOver) {
			a.log.Warn("another replica serves a request that runs here too, since this one could not say so in time", "lease", a.lease)
		}
	}
	if err == nil {
		c.written = time.Now()
	}
	return err
}
