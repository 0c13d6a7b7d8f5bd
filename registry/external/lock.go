package external

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/internal/mcpclient"
)

// LockName is the name of the file with the pinned contracts, beside agent.yaml.
const LockName = "mcp.lock.json"

const (
	lockVersion  = 1
	maxLockBytes = 16 << 20
)

// A Lock has the contracts that were pinned, by server.
type Lock struct {
	Version int                     `json:"version"`
	Servers map[string]LockedServer `json:"servers"`
}

// A LockedServer is what a server served when it was pinned.
type LockedServer struct {
	// Implementation is what it called itself, for people.
	Implementation string       `json:"implementation,omitempty"`
	Tools          []LockedTool `json:"tools"`
}

// A LockedTool is the contract of a tool with its digest.
type LockedTool struct {
	mcpclient.Contract
	Digest string `json:"digest"`
}

// contracts returns those of a server.
func (s LockedServer) contracts() []mcpclient.Contract {
	all := make([]mcpclient.Contract, len(s.Tools))
	for i, t := range s.Tools {
		all[i] = t.Contract
	}
	return all
}

// errEdited is the error of a lock in which a contract is not what its digest says.
var errEdited = errors.New("run `agentd registry pin` again")

// ReadLock reads the lock of an agent, whose files are in dir. One that does not exist is
// empty. A contract that is not what its digest says was edited, and is an error.
func ReadLock(dir string) (*Lock, error) {
	path := filepath.Join(dir, LockName)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || dir == "" {
		return &Lock{Version: lockVersion}, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxLockBytes {
		return nil, fmt.Errorf("%s is not a regular file of at most %d bytes", path, maxLockBytes)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	lock := &Lock{}
	if err := ijson.Check(data, 128); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(lock); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if lock.Version != lockVersion {
		return nil, fmt.Errorf("%s has version %d, and this agentd reads version %d", path, lock.Version, lockVersion)
	}
	for name, server := range lock.Servers {
		seen := map[string]bool{}
		for i := range server.Tools {
			t := &server.Tools[i]
			if digest, err := t.Contract.Digest(); err != nil || digest != t.Digest || seen[t.Name] {
				return nil, fmt.Errorf("%s: the contract of the tool %q of %q is not the one that was pinned: %w", path, t.Name, name, errEdited)
			}
			seen[t.Name] = true
			for _, raw := range []*json.RawMessage{&t.InputSchema, &t.OutputSchema, &t.Annotations} {
				*raw = compact(*raw)
			}
		}
	}
	return lock, nil
}

// Add puts contracts of a server into the lock, in place of those of these names. The others of
// the server stay.
func (l *Lock) Add(name, implementation string, contracts []mcpclient.Contract) error {
	server := LockedServer{Implementation: implementation, Tools: []LockedTool{}}
	for _, t := range l.Servers[name].Tools {
		if !slices.ContainsFunc(contracts, func(c mcpclient.Contract) bool { return c.Name == t.Name }) {
			server.Tools = append(server.Tools, t)
		}
	}
	for _, c := range contracts {
		digest, err := c.Digest()
		if err != nil {
			return err
		}
		server.Tools = append(server.Tools, LockedTool{c, digest})
	}
	slices.SortFunc(server.Tools, func(a, b LockedTool) int { return strings.Compare(a.Name, b.Name) })
	if l.Servers == nil {
		l.Servers = map[string]LockedServer{}
	}
	l.Servers[name] = server
	return nil
}

// compact takes out the white space of the file.
func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if raw == nil || json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// WriteLock replaces the lock of an agent.
func WriteLock(dir string, lock *Lock) error {
	var data bytes.Buffer
	enc := json.NewEncoder(&data)
	enc.SetEscapeHTML(false) // people read it
	enc.SetIndent("", "  ")
	if err := enc.Encode(lock); err != nil {
		return err
	}
	path := filepath.Join(dir, LockName)
	temporary, err := os.CreateTemp(dir, ".mcp.lock-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temporary.Name()) }() // which has been renamed if all went well
	_, err = temporary.Write(data.Bytes())
	if err = errors.Join(err, temporary.Chmod(0o644), temporary.Sync(), temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}
