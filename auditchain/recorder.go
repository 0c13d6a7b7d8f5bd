package auditchain

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// OnFailure says what becomes of a call whose record cannot be written.
type OnFailure uint8

const (
	// FailClosed refuses the call. It is the default.
	FailClosed OnFailure = iota
	// FailOpen lets the call proceed without a record. The loss is counted, and
	// recorded once the log takes records again.
	FailOpen
)

// String is closed or open.
func (f OnFailure) String() string {
	switch f {
	case FailClosed:
		return "closed"
	case FailOpen:
		return "open"
	}
	return fmt.Sprintf("onFailure(%d)", uint8(f))
}

// MarshalText is the name that String gives.
func (f OnFailure) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads closed or open.
func (f *OnFailure) UnmarshalText(text []byte) error {
	for _, known := range []OnFailure{FailClosed, FailOpen} {
		if known.String() == string(text) {
			*f = known
			return nil
		}
	}
	return fmt.Errorf("auditchain: onFailure is closed or open, not %q", text)
}

// An Appender takes records; [*Log] is one.
type Appender interface {
	Append(ctx context.Context, record Record) (seq int64, err error)
}

// A Recorder writes records under a policy for failures. Schema violations are
// fail-closed whatever the policy. It is safe for concurrent use.
type Recorder struct {
	log       Appender
	onFailure OnFailure

	mu  sync.Mutex
	gap gap // records lost and not yet told of; guarded by mu
	// lost counts all records lost; guarded by mu
	lost int64
}

// A gap is the body of the lifecycle record that tells of lost records.
type gap struct {
	Event string         `json:"event"` // always "gap"
	Lost  int64          `json:"lost"`
	Kinds map[Kind]int64 `json:"kinds"`
	// From and To are the times of the first and last loss, in Unix
	// milliseconds.
	From int64 `json:"from"`
	To   int64 `json:"to"`
	// Code is the class of the last failure.
	Code string `json:"code"`
}

// NewRecorder makes a recorder that writes to log.
func NewRecorder(log Appender, onFailure OnFailure) *Recorder {
	return &Recorder{log: log, onFailure: onFailure}
}

// Record appends a record. An error means that the call must be refused. Under
// [FailOpen] there is one only for schema violations, and for records that are
// invalid in themselves ([CodeInvalid]).
func (r *Recorder) Record(ctx context.Context, record Record) error {
	kind := record.Kind
	_, err := r.log.Append(ctx, record)
	switch {
	case err == nil:
		r.tellGap(ctx)
		return nil
	case r.onFailure == FailClosed, kind == KindSchemaViolation, CodeOf(err) == CodeInvalid:
		return err
	}
	r.lose(kind, err)
	return nil
}

// Lost counts the records that were lost under [FailOpen].
func (r *Recorder) Lost() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

// lose counts a record that was not written.
func (r *Recorder) lose(kind Kind, err error) {
	now := time.Now().UnixMilli()
	code := "context"
	if c := CodeOf(err); c != 0 {
		code = c.String()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gap.Lost == 0 {
		r.gap = gap{Event: "gap", Kinds: map[Kind]int64{}, From: now}
	}
	r.lost++
	r.gap.Lost++
	r.gap.Kinds[kind]++
	r.gap.To, r.gap.Code = now, code
}

// tellGap records what was lost since the last such record. If that fails, the
// next success tells it.
func (r *Recorder) tellGap(ctx context.Context) {
	r.mu.Lock()
	told := r.gap
	r.gap = gap{}
	r.mu.Unlock()
	if told.Lost == 0 {
		return
	}
	body, err := json.Marshal(told)
	if err == nil {
		_, err = r.log.Append(ctx, Record{Kind: KindLifecycle, Body: body})
	}
	if err != nil {
		r.mu.Lock()
		r.gap.add(&told)
		r.mu.Unlock()
	}
}

// add joins an earlier gap to this one.
func (g *gap) add(earlier *gap) {
	if g.Lost == 0 {
		*g = *earlier
		return
	}
	g.From = earlier.From
	g.Lost += earlier.Lost
	for kind, n := range earlier.Kinds {
		g.Kinds[kind] += n
	}
}
