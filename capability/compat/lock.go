package compat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/output"
)

// LockVersion is the version of lock files that this package writes and reads.
const LockVersion = 1

// A Lock holds the full contracts that a fleet was built against: a digest alone
// would say that something changed, and not what.
type Lock struct {
	// Version is LockVersion.
	Version int `json:"lockVersion"`
	// Peers are the published forms, by agent.
	Peers map[envelope.Address]*capability.Published `json:"peers"`
}

// NewLock locks documents.
func NewLock(docs ...*capability.Document) *Lock {
	l := &Lock{Version: LockVersion, Peers: map[envelope.Address]*capability.Published{}}
	for _, d := range docs {
		l.Peers[d.Agent] = d.Published()
	}
	return l
}

// Encode is the lock as indented JSON with sorted members: the same bytes for
// the same contracts, so that it can be reviewed and checked in.
func (l *Lock) Encode() ([]byte, error) {
	var b bytes.Buffer
	if err := output.WriteJSON(&b, output.JSON, l); err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	return b.Bytes(), nil
}

// ErrNoLock says that there is no lock file.
var ErrNoLock = errors.New("no lock file")

// ReadLock reads a lock file. The error wraps [ErrNoLock] when there is none.
func ReadLock(path string) (*Lock, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w at %s: make one with `agentd capabilities lock`", ErrNoLock, path)
	}
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	var l Lock
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if l.Version != LockVersion {
		return nil, fmt.Errorf("lock %s: lockVersion is %d, and this agentd reads %d", path, l.Version, LockVersion)
	}
	for address, p := range l.Peers {
		if _, err := envelope.ParseAddress(string(address)); err != nil {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if p == nil || p.Agent != address {
			return nil, fmt.Errorf("lock %s: the entry %s is not that agent's", path, address)
		}
	}
	return &l, nil
}

// Check compares the lock with what the agents offer now. An agent that is gone
// has lost all its capabilities; one that is not locked yet has gained them.
func (l *Lock) Check(now ...*capability.Document) *Report {
	all := &Report{Findings: []Finding{}}
	current := map[envelope.Address]*capability.Published{}
	for _, d := range now {
		current[d.Agent] = d.Published()
	}
	var agents []envelope.Address
	for a := range l.Peers {
		agents = append(agents, a)
	}
	for a := range current {
		agents = append(agents, a)
	}
	slices.Sort(agents)
	for _, a := range slices.Compact(agents) {
		before, after := l.Peers[a], current[a]
		if before == nil {
			before = &capability.Published{Agent: a}
		}
		if after == nil {
			after = &capability.Published{Agent: a}
		}
		all.Findings = append(all.Findings, Compare(before, after, Both).Findings...)
	}
	return all
}
