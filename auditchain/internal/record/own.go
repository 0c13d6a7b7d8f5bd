package record

import (
	"encoding/json"
	"fmt"
)

// The bodies of the records that only the log itself writes. Verification
// trusts an erasure or a change of keys only if such a record, under a signed
// checkpoint, authorises it.

// A Redaction is the body of a record of kind [KindRedaction].
type Redaction struct {
	// Reason is the operator's.
	Reason string `json:"reason"`
	// Match names the columns that were searched, without the values, which may
	// be the very data that had to be erased.
	Match string `json:"match"`
	// Ranges lists the erased records as the first and last of each run,
	// ascending.
	Ranges [][2]int64 `json:"ranges"`
	// Count is the number of those records.
	Count int64 `json:"count"`
	// Actor is who redacted. Older versions did not record it.
	Actor *Actor `json:"actor,omitempty"`
}

// Covers reports whether the redaction names a record.
func (r *Redaction) Covers(seq int64) bool {
	for _, run := range r.Ranges {
		if run[0] <= seq && seq <= run[1] {
			return true
		}
	}
	return false
}

// A Pruning is the body of a record of kind [KindPrune].
type Pruning struct {
	// Through is the last record that may be removed.
	Through int64 `json:"through"`
	// Before is the time, in Unix milliseconds, before which the removed records
	// were written.
	Before int64 `json:"before"`
	// Count is the number of records that this pruning removed.
	Count int64 `json:"count"`
	// Reason is the operator's.
	Reason string `json:"reason"`
	// Actor is who pruned. Older versions did not record it.
	Actor *Actor `json:"actor,omitempty"`
}

// A KeyChange is the body of a record of kind [KindCheckpoint].
type KeyChange struct {
	// Event says how the key was changed.
	Event KeyEvent `json:"event"`
	// Key is the verifier key from now on, Previous the one before.
	Key      string `json:"key"`
	Previous string `json:"previous"`
	// Actor is who changed the key. Older versions did not record it.
	Actor *Actor `json:"actor,omitempty"`
}

// A KeyEvent is the way in which a signing key was changed.
type KeyEvent string

const (
	// KeyRotated is a change that the previous key signed: trust in that key
	// extends to the new one.
	KeyRotated KeyEvent = "key-rotated"
	// KeyReplaced is a change after the previous key was lost. Nothing vouches
	// for the new key but itself.
	KeyReplaced KeyEvent = "key-replaced"
)

// sealMember is the member of a body that seals the log: no unsigned record may follow.
// The records above have it, and the last one of a clean stop; nobody but the log itself
// writes it.
const sealMember = "sealed"

// PrepareSealed fills p from r, a record that the log makes or completes itself, and
// seals the log with it.
func (p *Prepared) PrepareSealed(r *Record) error {
	if !maySeal(r.Kind) {
		return fmt.Errorf("a record of kind %q seals no log", r.Kind)
	}
	members := map[string]json.RawMessage{}
	if len(r.Body) > 0 {
		if err := json.Unmarshal(r.Body, &members); err != nil {
			return fmt.Errorf("the body: %w", err)
		}
	}
	members[sealMember] = json.RawMessage("true")
	body, err := json.Marshal(members)
	if err != nil {
		return fmt.Errorf("the body: %w", err)
	}
	sealed := *r
	sealed.Body = body
	return new(Preparer).prepare(p, &sealed)
}

// IsSealed reports whether a record seals the log. Those that older versions wrote do
// not.
func IsSealed(kind Kind, body []byte) bool {
	if !maySeal(kind) {
		return false
	}
	var b struct {
		Sealed bool `json:"sealed"`
	}
	return json.Unmarshal(body, &b) == nil && b.Sealed
}

func maySeal(kind Kind) bool { return kind == KindLifecycle || kind.Reserved() }
