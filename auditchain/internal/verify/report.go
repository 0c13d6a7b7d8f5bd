package verify

import "github.com/agentd/agentd/auditchain/checkpoint"

// DefaultMaxFaults is the number of faults that a report lists by default.
const DefaultMaxFaults = 16

// Options configures [Run]. The zero value verifies the whole log against the
// public keys beside it.
type Options struct {
	// TrustedKeys are the verifier keys that the auditor trusts. Without any,
	// those in the file beside the database are used; anyone who could rewrite
	// the database may have rewritten that file too.
	TrustedKeys []string
	// Checkpoints are signed checkpoints of the log that were kept elsewhere. The
	// log must have grown from each of them.
	Checkpoints [][]byte
	// Witnesses are asked for the newest checkpoint they have seen.
	Witnesses []checkpoint.Witness
	// WitnessKeys are the keys of the witnesses, as in their .pub files; see
	// [checkpoint.NewWitnessKeys]. A witness confirms the log only by a checkpoint that
	// one of them has signed. Without any, an answer needs a signature besides the
	// log's, of which nobody knows whose it is: it contradicts, and does not confirm.
	WitnessKeys []string
	// Quorum is how many witnesses must confirm the log; 0 means all. Fewer than all
	// may be out of reach, or know nothing of it. A witness that contradicts is a
	// fault in any case.
	Quorum int
	// FromCheckpoint accepts the records under the checkpoint in the file beside
	// the database as verified. Only the root of their tree is checked, and the
	// records after them.
	FromCheckpoint bool
	// Continue, if set, is where an earlier run was stopped: see [State] for what that
	// proves. The indexes are left out.
	Continue *State
	// Stopped, if set, is called if the context ends the run, with where another one can
	// continue; not before the first good checkpoint, and not after a fault.
	Stopped func(*State)
	// Tenant, if set, is counted separately. The chain runs through all tenants
	// and can only be verified as a whole.
	Tenant string
	// MaxFaults bounds the faults that the report lists; 0 means
	// [DefaultMaxFaults]. All are counted.
	MaxFaults int
	// Progress, if set, is called now and then with the newest verified record
	// and the number of the last one.
	Progress func(seq, last int64)
}

// A Report is the outcome of a verification.
type Report struct {
	// Origin is the log's name.
	Origin string `json:"origin"`
	// Records counts the records that were checked.
	Records int64 `json:"records"`
	// Tenant counts those of the tenant asked for.
	Tenant int64 `json:"tenantRecords,omitempty"`
	// Pruned counts removed records, Erased those without content; a signed
	// record authorises both.
	Pruned int64 `json:"pruned"`
	Erased int64 `json:"erased"`
	// First is the number of the first record checked, 0 if none was. Last is
	// that of the last record in the log, 0 in an empty one.
	First int64 `json:"first"`
	Last  int64 `json:"last"`
	// Continued is the number of the last record that an earlier run has read and this one
	// has not; see [Options.Continue].
	Continued int64 `json:"continued,omitempty"`
	// Checkpoints counts the signed checkpoints that match the records.
	Checkpoints int64 `json:"checkpoints"`
	// Signed is the number of the last record under a good checkpoint. Records
	// after it could still be changed without a trace.
	Signed int64 `json:"signed"`
	// Keys lists the verifier keys of good checkpoints.
	Keys []string `json:"keys"`
	// KeysFromFile is true if the trusted keys came from beside the database.
	KeysFromFile bool `json:"keysFromFile"`
	// Witnesses names the witnesses whose checkpoint matches the log and has their
	// signature.
	Witnesses []string `json:"witnesses,omitempty"`
	// WitnessesUnpinned names those whose checkpoint matches and is signed by somebody
	// besides the log, but no key of a witness is known.
	WitnessesUnpinned []string `json:"witnessesUnpinned,omitempty"`
	// WitnessesSilent names those that could not be asked or have not signed, where
	// [Options.Quorum] allows that.
	WitnessesSilent []string `json:"witnessesSilent,omitempty"`
	// Faults lists the first faults found, in the order of the log; FaultCount
	// counts all.
	Faults     []Fault `json:"faults"`
	FaultCount int64   `json:"faultCount"`
}

// OK reports whether no fault was found.
func (r *Report) OK() bool { return r.FaultCount == 0 }

// Unsigned counts the records that no checkpoint covers yet.
func (r *Report) Unsigned() int64 { return max(0, r.Last-r.Signed) }
