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

// A Lock holds the contracts that a fleet was built against. It keeps them in
// full, because a digest shows that a contract changed but not how.
type Lock struct {
	// Version is LockVersion.
	Version int `json:"lockVersion"`
	// Peers are the published forms, by agent.
	Peers map[envelope.Address]*capability.Published `json:"peers"`
}

// NewLock returns a lock of the documents' published forms.
func NewLock(docs ...*capability.Document) *Lock {
	l := &Lock{Version: LockVersion, Peers: map[envelope.Address]*capability.Published{}}
	for _, d := range docs {
		l.Peers[d.Agent] = d.Published()
	}
	return l
}

// Encode returns the lock as indented JSON with sorted members. Equal contracts
// give equal bytes, so a lock file under version control changes only when a
// contract does.
func (l *Lock) Encode() ([]byte, error) {
	var b bytes.Buffer
	if err := output.WriteJSON(&b, output.JSON, l); err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	return b.Bytes(), nil
}

// ErrNoLock reports that there is no lock file.
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
	// A member that this version does not know may carry a restriction that it
	// would ignore.
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if l.Version != LockVersion {
		return nil, fmt.Errorf("lock %s: lockVersion is %d, and this agentd reads %d", path, l.Version, LockVersion)
	}
	// The entries decide what counts as a break, so a file that was edited by hand
	// must not pass one agent's contracts off as another's.
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

// Check compares the lock with the agents' current documents, agent by agent in
// the order of their addresses. An agent without a document has lost all its
// capabilities, and one that the lock does not hold has gained them.
func (l *Lock) Check(now ...*capability.Document) *Report { return l.CheckWith(Options{}, now...) }

// CheckWith is Check with options. Their progress is that of all agents together.
func (l *Lock) CheckWith(o Options, now ...*capability.Document) *Report {
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
	agents = slices.Compact(agents)
	total := 0
	for _, a := range agents {
		total += len(sortedNames(published(l.Peers, a), published(current, a)))
	}
	all := &Report{Findings: []Finding{}}
	before := 0 // capabilities of the agents that are compared
	for _, a := range agents {
		done := 0
		one := Options{Direction: Both, Progress: func(n, _ int) {
			if done = n; o.Progress != nil {
				o.Progress(before+n, total)
			}
		}}
		all.Findings = append(all.Findings, CompareWith(published(l.Peers, a), published(current, a), one).Findings...)
		before += done
	}
	return all
}

// published returns the contracts of an agent: an empty document stands for one that is not known.
func published(all map[envelope.Address]*capability.Published, a envelope.Address) *capability.Published {
	if p := all[a]; p != nil {
		return p
	}
	return &capability.Published{Agent: a}
}
