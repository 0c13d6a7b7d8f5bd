package verify

import "fmt"

// A Class is the way in which a log contradicts itself or what was signed. The
// set is closed.
type Class uint8

// The classes of a [Fault].
const (
	// RecordAltered is a record whose number, time, tenant, kind, digest or hash
	// was changed, or whose predecessor was: its columns do not give its hash.
	RecordAltered Class = iota + 1
	// ContentAltered is a record whose body, salt or searchable columns were
	// changed: its content does not give its digest.
	ContentAltered
	// RecordMissing is a record that is missing without a prune record that
	// authorises its removal.
	RecordMissing
	// ForgedErasure is a record without content that no signed redaction record
	// names.
	ForgedErasure
	// TimeReversed is a record older than the one before it.
	TimeReversed
	// TreeAltered is a stored node of the Merkle tree that differs from the one
	// computed from the records.
	TreeAltered
	// Rewritten is a history that is consistent in itself but differs from the
	// one that was signed.
	Rewritten
	// Truncated is a log that lacks signed records at its end: it was cut, or
	// replaced by an older copy.
	Truncated
	// CheckpointForged is a checkpoint that is malformed, belongs to another log,
	// or has a false signature.
	CheckpointForged
	// KeyUntrusted is a checkpoint signed by a key to which the trusted keys do
	// not lead.
	KeyUntrusted
	// WitnessConflict is a log that differs from the one a witness has seen.
	WitnessConflict
	// SchemaAltered is a table, index or view of the log that was changed,
	// or a trigger that was added.
	SchemaAltered
	// Unreadable is a damaged database file.
	Unreadable
	// UnsignedTail are records under no checkpoint that a crash cannot have left:
	// somebody else has appended them, or removed the checkpoints over them.
	UnsignedTail
	// RecordAdded are rows outside the numbering of the records.
	RecordAdded
	// IndexAltered is an index that does not list what the records say, so that
	// queries and exports lack records or show others.
	IndexAltered
	// WitnessUnproven is a witness that was asked and has not confirmed the log: its
	// answer lacks its own signature.
	WitnessUnproven
)

//nolint:gochecknoglobals // a table of constants
var classNames = [...]string{
	RecordAltered: "record-altered", ContentAltered: "content-altered", RecordMissing: "record-missing",
	ForgedErasure: "forged-erasure", TimeReversed: "time-reversed", TreeAltered: "tree-altered",
	Rewritten: "rewritten", Truncated: "truncated", CheckpointForged: "checkpoint-forged",
	KeyUntrusted: "key-untrusted", WitnessConflict: "witness-conflict", SchemaAltered: "schema-altered",
	Unreadable: "unreadable", UnsignedTail: "unsigned-tail", RecordAdded: "record-added", IndexAltered: "index-altered", WitnessUnproven: "witness-unproven",
}

// String returns the class's name, such as "record-altered".
func (c Class) String() string {
	if c == 0 || int(c) >= len(classNames) {
		return fmt.Sprintf("fault(%d)", uint8(c))
	}
	return classNames[c]
}

// MarshalText returns the class's name.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText parses a name as [Class.String] returns it.
func (c *Class) UnmarshalText(text []byte) error {
	for i, name := range classNames {
		if i > 0 && name == string(text) {
			*c = Class(i)
			return nil
		}
	}
	return fmt.Errorf("auditchain: unknown fault class %q", text)
}

// A Fault is one contradiction in a log.
type Fault struct {
	// Class is the kind of contradiction.
	Class Class `json:"class"`
	// Seq is the first record concerned, or 0 if none is.
	Seq int64 `json:"seq"`
	// Last is the last record concerned if it is not Seq.
	Last int64 `json:"last,omitempty"`
	// Detail describes the fault in words. It contains no content of a record.
	Detail string `json:"detail"`
}

// String returns the fault in one line.
func (f Fault) String() string {
	switch {
	case f.Seq == 0:
		return fmt.Sprintf("%s: %s", f.Class, f.Detail)
	case f.Last > f.Seq:
		return fmt.Sprintf("records %d to %d: %s: %s", f.Seq, f.Last, f.Class, f.Detail)
	}
	return fmt.Sprintf("record %d: %s: %s", f.Seq, f.Class, f.Detail)
}
