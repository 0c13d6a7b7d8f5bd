package once

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/agentd/agentd/rpc/callee"
)

// format is the version of an entry.
const format = 1

// A state is what is known of a request.
type state string

const (
	claimed state = "claimed" // a replica serves it
	left    state = "left"    // it has ended, and nobody knows its outcome
	done    state = "done"    // its reply is known
)

// A record is an entry of [Answers]: this header in JSON, a line break, and the reply as
// it is.
type record struct {
	Format int    `json:"v"`
	State  state  `json:"state"`
	Digest []byte `json:"digest"` // of the payload
	// Owner is the replica that wrote the entry: a new name for each process.
	Owner   string `json:"owner"`
	LeaseMs int64  `json:"leaseMs"`

	reply []byte
}

// headerBytes is room for the header.
const headerBytes = 512

func (r record) encode() ([]byte, error) {
	r.Format = format
	header, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return append(append(header, '\n'), r.reply...), nil
}

func decodeRecord(data []byte) (r record, err error) {
	header, reply, ok := bytes.Cut(data, []byte{'\n'})
	if !ok {
		return r, errors.New("the entry is cut short")
	}
	if err := json.Unmarshal(header, &r); err != nil {
		return r, fmt.Errorf("the entry is none of agentd's: %w", err)
	}
	if r.Format != format {
		return r, fmt.Errorf("the entry's format is %d, and this version knows %d: use the agentd that wrote it", r.Format, format)
	}
	// A short digest would turn every repetition into a conflict.
	if len(r.Digest) != sha256.Size {
		return r, errors.New("the entry's digest is cut short")
	}
	r.reply = reply
	return r, nil
}

func (r *record) prior() callee.Prior {
	p := callee.Prior{State: callee.PriorBegun}
	copy(p.Digest[:], r.Digest)
	if r.State == done {
		p.State, p.Reply = callee.PriorDone, r.reply
	}
	return p
}

// keyOf is the key of an entry, which no other sequence of names has. It is a digest,
// because whoever may ask for a bucket's state sees all keys.
func keyOf(names ...string) string {
	h := sha256.New()
	for _, n := range names {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(n)))
		h.Write(size[:])
		h.Write([]byte(n))
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

func keyOfRequest(r callee.KeyedRequest) string {
	return keyOf(string(r.From), r.TenantID, r.Capability, r.Key)
}
