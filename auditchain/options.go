package auditchain

import (
	"fmt"
	"strings"
	"time"

	"github.com/agentd/agentd/auditchain/checkpoint"
)

// Defaults of [Options].
const (
	DefaultCheckpointRecords  = 4096
	DefaultCheckpointInterval = 10 * time.Second
	DefaultMaxPending         = 4096
)

// Options configures a log that is open for writing. The zero value is good.
type Options struct {
	// Name becomes part of the origin of a new log: an agent's id, say. It
	// holds letters, digits, and any of "_.-". It is not looked at when the log
	// exists.
	Name string
	// CheckpointRecords is how many records may be unsigned before a checkpoint
	// is made, from 1; 0 is [DefaultCheckpointRecords].
	CheckpointRecords int64
	// CheckpointInterval is how long a record may be unsigned; 0 is
	// [DefaultCheckpointInterval].
	CheckpointInterval time.Duration
	// MaxPending is how many appends may wait for the disk before further ones
	// block, from 1; 0 is [DefaultMaxPending].
	MaxPending int
	// Witnesses co-sign each checkpoint that is published. A witness that
	// cannot be reached delays nothing and is asked again; see [Log.Status] and
	// [Log.AddWitness].
	Witnesses []checkpoint.Witness
	// OnWitness, if set, is called when a witness has answered in another way
	// than before: err is nil when it has co-signed, [checkpoint.ErrInconsistent]
	// when it has seen another history of the log, and else why it could not be
	// asked. It must not close the log.
	OnWitness func(name string, err error)
	// ReplaceLostKey makes Open generate a new signing key when the log's own
	// is gone. The log then records the replacement, and auditors must be told
	// to trust the new key.
	ReplaceLostKey bool
	// Now is the clock; nil is [time.Now].
	Now func() time.Time
}

// withDefaults checks the options and fills in what is zero.
func (o Options) withDefaults() (Options, error) {
	if o.Name == "" {
		o.Name = "log"
	}
	if strings.Trim(o.Name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") != "" {
		return o, invalid(fmt.Sprintf("the name %q may hold letters, digits, _ . - only", o.Name))
	}
	if o.CheckpointRecords < 0 || o.CheckpointInterval < 0 || o.MaxPending < 0 {
		return o, invalid("CheckpointRecords, CheckpointInterval and MaxPending must not be negative")
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
	}
	return o, nil
}
