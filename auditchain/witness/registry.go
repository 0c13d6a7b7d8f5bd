package witness

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/atomicfile"
	"github.com/agentd/agentd/auditchain/proof"
)

// registrySuffix ends the names of the files that a [Registry] keeps.
const registrySuffix = ".log.json"

// maxEntryBytes bounds one of them, far above [maxKeys] keys.
const maxEntryBytes = 1 << 20

// A Registry stores, in a file for each agent, the first log that the agent has
// shown and its public keys. An operator may remove a file to trust the next log
// that the agent shows. It is safe for concurrent use.
type Registry struct {
	folder string

	mu   sync.Mutex
	logs map[string]entry // by owner; guarded by mu
}

// An entry is one file.
type entry struct {
	// Owner is the agent, Origin its log.
	Owner  string `json:"owner"`
	Origin string `json:"origin"`
	// Keys are verifier keys, oldest first.
	Keys []string `json:"keys"`
}

// OpenRegistry reads the registry in a folder, which it creates if necessary. A
// file that cannot be read is an error: a witness that forgets can be deceived.
func OpenRegistry(folder string) (*Registry, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("witness: %w", err)
	}
	files, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("witness: %w", err)
	}
	r := &Registry{folder: folder, logs: map[string]entry{}}
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), registrySuffix) {
			continue
		}
		name := filepath.Join(folder, file.Name())
		text, err := atomicfile.Read(name, maxEntryBytes)
		var e entry
		if err == nil {
			err = decode(text, &e)
		}
		if err == nil && (e.Owner == "" || e.Origin == "" || len(e.Keys) == 0 || r.name(e.Owner) != name) {
			err = ErrMalformed
		}
		if err != nil {
			return nil, fmt.Errorf("witness: the file %s cannot be read (restore it, or remove it to trust the next log that its agent shows): %w", name, err)
		}
		r.logs[e.Owner] = e
	}
	return r, nil
}

func (r *Registry) name(owner string) string {
	sum := sha256.Sum256([]byte(owner))
	return filepath.Join(r.folder, hex.EncodeToString(sum[:16])+registrySuffix)
}

// Keys returns the trusted verifier keys of a log, none for an unknown one.
func (r *Registry) Keys(origin string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.logs {
		if e.Origin == origin {
			return slices.Clone(e.Keys)
		}
	}
	return nil
}

// Accept checks and stores what an agent presents of its log: its public keys,
// and the proofs that each introduced the next. signed is a checkpoint of the
// log, which one of the keys must have signed.
//
// An agent's first log is trusted. Once a log is known, a further key of it is
// trusted under a proof that a trusted one introduced it. The error is
// [checkpoint.ErrInconsistent] for an agent that shows another log, or the log
// of another agent, and else that of [checkpoint.Open].
func (r *Registry) Accept(owner string, signed []byte, keys []string, rotations [][]byte) error {
	shown, err := checkpoint.Parse(string(signed))
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known, err := r.known(owner, shown.Origin)
	if err != nil {
		return err
	}
	next := entry{Owner: owner, Origin: shown.Origin, Keys: slices.Clone(known.Keys)}
	if len(known.Keys) == 0 {
		next.Keys = slices.Clone(keys)
	} else if err := next.follow(rotations); err != nil {
		return err
	}
	trusted, err := checkpoint.NewKeys(next.Keys...)
	if err != nil {
		return err
	}
	if _, err := checkpoint.Open(signed, trusted); err != nil {
		return err
	}
	if slices.Equal(next.Keys, known.Keys) {
		return nil
	}
	return r.save(next)
}

// known returns the entry of an owner's log, zero for a first one.
func (r *Registry) known(owner, origin string) (entry, error) {
	known := r.logs[owner]
	if known.Origin != "" && known.Origin != origin {
		return known, fmt.Errorf("%w: %s has another log, %s; this is %s", checkpoint.ErrInconsistent, owner, known.Origin, origin)
	}
	for _, other := range r.logs {
		if other.Origin == origin && other.Owner != owner {
			return known, fmt.Errorf("%w: the log %s belongs to %s", checkpoint.ErrInconsistent, origin, other.Owner)
		}
	}
	return known, nil
}

// Restore puts back what an agent has shown, from a place that is not the folder, and
// reports whether the folder said something else.
func (r *Registry) Restore(owner, origin string, keys []string) (edited bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.logs[owner]; known.Origin == origin && slices.Equal(known.Keys, keys) {
		return false, nil
	}
	return true, r.save(entry{Owner: owner, Origin: origin, Keys: slices.Clone(keys)})
}

// of returns the entry of an agent.
func (r *Registry) of(owner string) (entry, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.logs[owner]
	return e, ok
}

// follow extends trust to the keys that trusted ones introduced. A proof under an
// untrusted key introduces nothing.
func (e *entry) follow(rotations [][]byte) error {
	for _, text := range rotations {
		p, err := proof.Parse(text)
		if err != nil {
			return err
		}
		trusted, err := checkpoint.NewKeys(e.Keys...)
		if err != nil {
			return err
		}
		result, err := p.Verify(trusted)
		if errors.Is(err, checkpoint.ErrUntrusted) {
			continue
		}
		if err != nil {
			return err
		}
		var change struct {
			Event    string `json:"event"`
			Key      string `json:"key"`
			Previous string `json:"previous"`
		}
		if result.Origin != e.Origin || p.Record.Kind != "checkpoint" || p.Record.Content == nil ||
			json.Unmarshal(p.Record.Content.Body, &change) != nil || change.Event != "key-rotated" || change.Previous != result.Key {
			return fmt.Errorf("%w: record %d changes no key of this log", proof.ErrFalse, p.Record.Seq)
		}
		if !slices.Contains(e.Keys, change.Key) && len(e.Keys) < maxKeys {
			e.Keys = append(e.Keys, change.Key)
		}
	}
	return nil
}

// save makes an entry durable and then the current one.
func (r *Registry) save(e entry) error {
	text, err := json.MarshalIndent(e, "", "  ")
	if err == nil {
		err = atomicfile.Replace(r.name(e.Owner), append(text, '\n'), fs.FileMode(0o600))
	}
	if err != nil {
		return fmt.Errorf("witness: %w", err)
	}
	r.logs[e.Owner] = e
	return nil
}
