package auditchain

import (
	"fmt"
	"strings"
	"time"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/auditerr"
	"github.com/agentd/agentd/auditchain/internal/verify"
)

// Defaults of [Options].
const (
	// DefaultCheckpointRecords is also the largest number: [Open] and verification
	// believe no more unsigned records than one less.
	DefaultCheckpointRecords  = verify.MaxUnsigned + 1
	DefaultCheckpointInterval = 10 * time.Second
	DefaultMaxPending         = 4096
)

// nameCharacters are those that a log's name may contain.
const nameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

// Options configures a log that is open for writing. The zero value is usable.
type Options struct {
	// Name becomes part of the origin of a new log; an agent's id is a good one.
	// It consists of letters, digits, and any of "_.-". It is ignored if the log
	// exists.
	Name string
	// CheckpointRecords is the number of unsigned records at which a checkpoint
	// is signed, from 1 to [DefaultCheckpointRecords]; 0 means that.
	CheckpointRecords int64
	// CheckpointInterval is how long a record may stay unsigned; 0 means
	// [DefaultCheckpointInterval].
	CheckpointInterval time.Duration
	// MaxPending is the number of appends that may wait for the disk before
	// further ones block, from 1; 0 means [DefaultMaxPending]. [Log.AppendAll] has one
	// at a time, of many records.
	MaxPending int
	// Witnesses co-sign each published checkpoint. A witness that cannot be
	// reached delays nothing and is asked again; see [Log.Status] and
	// [Log.AddWitness].
	Witnesses []checkpoint.Witness
	// OnWitness, if set, is called if the answer of a witness differs in kind
	// from the one before. The error is nil if the witness has co-signed,
	// [checkpoint.ErrInconsistent] if it has seen another history of the log, and
	// otherwise the reason why it could not be asked. OnWitness must not close
	// the log.
	OnWitness func(name string, err error)
	// ReplaceLostKey makes Open generate a new signing key if the log's is gone.
	// The log records the replacement, and auditors have to be given the new key.
	ReplaceLostKey bool
	// Now is the clock; nil means [time.Now]. Only of that one the log can tell that
	// it was set ahead.
	Now func() time.Time

	elapsed func() time.Duration
}

// withDefaults validates the options and replaces zero values.
func (o Options) withDefaults() (Options, error) {
	if o.Name == "" {
		o.Name = "log"
	}
	if strings.Trim(o.Name, nameCharacters) != "" {
		return o, auditerr.Invalid(fmt.Sprintf("the name %q may hold letters, digits, _ . - only", o.Name))
	}
	if o.CheckpointRecords < 0 || o.CheckpointInterval < 0 || o.MaxPending < 0 {
		return o, auditerr.Invalid("CheckpointRecords, CheckpointInterval and MaxPending must not be negative")
	}
	if o.CheckpointRecords > DefaultCheckpointRecords {
		return o, auditerr.Invalid(fmt.Sprintf("CheckpointRecords must be at most %d: more unsigned records would not be believed", DefaultCheckpointRecords))
	}
	if o.CheckpointRecords == 0 {
		o.CheckpointRecords = DefaultCheckpointRecords
	}
	if o.CheckpointInterval == 0 {
		o.CheckpointInterval = DefaultCheckpointInterval
	}
	if o.MaxPending == 0 {
		o.MaxPending = DefaultMaxPending
	}
	if o.Now == nil {
		o.Now = time.Now
		start := time.Now()
		o.elapsed = func() time.Duration { return time.Since(start) } // by the monotonic clock
	}
	return o, nil
}
