package auditchain

import "fmt"

// A FaultClass says in which way a log contradicts itself or what was signed.
// The set is closed.
type FaultClass uint8

// The classes of a [Fault].
const (
	// FaultRecordAltered is a record whose number, time, tenant, kind, digest or
	// hash was changed, or whose predecessor was: the hash does not come out.
	FaultRecordAltered FaultClass = iota + 1
	// FaultContentAltered is a record whose body, salt or searchable columns
	// were changed: the digest does not come out.
	FaultContentAltered
	// FaultRecordMissing is a record that is gone though no prune record allows
	// it.
	FaultRecordMissing
	// FaultForgedErasure is a record without its content, though no signed
	// redaction record names it.
	FaultForgedErasure
	// FaultTimeReversed is a record older than the one before it.
	FaultTimeReversed
	// FaultTreeAltered is a stored node of the Merkle tree that the records do
	// not give.
	FaultTreeAltered
	// FaultRewritten is a history that is consistent in itself but is not the
	// one that was signed.
	FaultRewritten
	// FaultTruncated is a log that lacks records at its end which were signed:
	// it was cut, or an older copy was put in its place.
	FaultTruncated
	// FaultCheckpointForged is a checkpoint that is malformed, of another log, or
	// falsely signed.
	FaultCheckpointForged
	// FaultKeyUntrusted is a checkpoint signed by a key that the trusted keys do
	// not lead to.
	FaultKeyUntrusted
	// FaultWitnessConflict is a log that is not the one a witness has seen.
	FaultWitnessConflict
	// FaultSchemaAltered is a table, index or view of the log that was changed,
	// or a trigger that was added.
	FaultSchemaAltered
	// FaultUnreadable is a damaged database file.
	FaultUnreadable
)

//nolint:gochecknoglobals // a table of constants
var faultNames = [...]string{
	FaultRecordAltered: "record-altered", FaultContentAltered: "content-altered", FaultRecordMissing: "record-missing",
	FaultForgedErasure: "forged-erasure", FaultTimeReversed: "time-reversed", FaultTreeAltered: "tree-altered",
	FaultRewritten: "rewritten", FaultTruncated: "truncated", FaultCheckpointForged: "checkpoint-forged",
	FaultKeyUntrusted: "key-untrusted", FaultWitnessConflict: "witness-conflict", FaultSchemaAltered: "schema-altered",
	FaultUnreadable: "unreadable",
}

// FaultClasses lists every class.
func FaultClasses() []FaultClass {
	classes := make([]FaultClass, 0, len(faultNames)-1)
	for c := range faultNames[1:] {
		classes = append(classes, FaultClass(c+1))
	}
	return classes
}

// String is the class's name, such as "record-altered".
func (c FaultClass) String() string {
	if c == 0 || int(c) >= len(faultNames) {
		return fmt.Sprintf("fault(%d)", uint8(c))
	}
	return faultNames[c]
}

// MarshalText is the class's name.
func (c FaultClass) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads a name that [FaultClass.String] gives.
func (c *FaultClass) UnmarshalText(text []byte) error {
	for i, name := range faultNames {
		if i > 0 && name == string(text) {
			*c = FaultClass(i)
			return nil
		}
	}
	return fmt.Errorf("auditchain: unknown fault class %q", text)
}

// A Fault is one thing that is wrong with a log.
type Fault struct {
	// Class says what kind of thing.
	Class FaultClass `json:"class"`
	// Seq is the first record concerned, or 0 if none is.
	Seq int64 `json:"seq"`
	// Last is the last record concerned where it is not Seq.
	Last int64 `json:"last,omitempty"`
	// Detail says more, in words. It holds no content of a record.
	Detail string `json:"detail"`
}

// String is the fault in one line.
func (f Fault) String() string {
	switch {
	case f.Seq == 0:
		return fmt.Sprintf("%s: %s", f.Class, f.Detail)
	case f.Last > f.Seq:
		return fmt.Sprintf("records %d to %d: %s: %s", f.Seq, f.Last, f.Class, f.Detail)
	}
	return fmt.Sprintf("record %d: %s: %s", f.Seq, f.Class, f.Detail)
}
