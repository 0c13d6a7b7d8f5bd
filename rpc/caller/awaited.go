package caller

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/agentd/agentd/transport"
)

// noteInterval is how often [Client.Await] looks whether another process of the agent has
// cancelled the call.
const noteInterval = 5 * time.Second

// errGivenUp is the cause with which waiting for an answer ends when the call is cancelled.
var errGivenUp = errors.New("the call was cancelled while it was awaited")

// awaited are the calls whose answers [Client.Await] waits for. The zero value is ready.
type awaited struct {
	mu    sync.Mutex
	waits map[string]map[*context.CancelCauseFunc]struct{} // by correlation id; guarded by mu
}

// add returns a context that ends when the call is cancelled.
func (a *awaited) add(ctx context.Context, correlationID string) (_ context.Context, forget func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waits == nil {
		a.waits = map[string]map[*context.CancelCauseFunc]struct{}{}
	}
	if a.waits[correlationID] == nil {
		a.waits[correlationID] = map[*context.CancelCauseFunc]struct{}{}
	}
	a.waits[correlationID][&cancel] = struct{}{}
	return ctx, func() {
		cancel(nil)
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.waits[correlationID], &cancel)
		if len(a.waits[correlationID]) == 0 {
			delete(a.waits, correlationID)
		}
	}
}

// end ends the contexts of those who wait for a call.
func (a *awaited) end(correlationID string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for cancel := range a.waits[correlationID] {
		(*cancel)(errGivenUp)
	}
}

// watchNote returns a context that ends when the note of a call says that it was cancelled.
// stop ends the watching, and waits for it.
func (c *call) watchNote(ctx context.Context, q transport.CallQueue) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		ticker := time.NewTicker(noteInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
			asking, done := context.WithTimeout(ctx, noteTimeout)
			text, err := q.Noted(asking, c.ids.correlation)
			done()
			var note callNote
			if err == nil && json.Unmarshal(text, &note) == nil && note.Cancelled {
				cancel(errGivenUp)
			}
		}
	})
	return ctx, func() {
		cancel(nil)
		watching.Wait()
	}
}
