package capabilities

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/capability/compat"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli"
)

// LockName is the name of the lock file beside fleet.yaml.
const LockName = "agentd.lock.json"

// Lock writes the contracts of the fleet to a lock file; "" is the default one.
func Lock(env *cli.Env, path string) error {
	docs, path, err := contracts(env, path)
	if err != nil {
		return err
	}
	data, err := compat.NewLock(docs...).Encode()
	if err != nil {
		return err
	}
	if err := replaceFile(path, data); err != nil {
		return err
	}
	fmt.Fprintf(env.Stderr, "✓ locked %d agents in %s\n", len(docs), path)
	return nil
}

// Check compares the contracts of the fleet with a lock file. The error is a
// finding when a change breaks callers, or with pinWords changes what models read.
func Check(env *cli.Env, path, format string, pinWords bool) error {
	docs, path, err := contracts(env, path)
	if err != nil {
		return err
	}
	lock, err := compat.ReadLock(path)
	if err != nil {
		return err
	}
	comparing, end := comparing(env, filepath.Base(path))
	report := lock.CheckWith(compat.Options{Progress: comparing}, docs...)
	end()
	return writeCompat(env, report, pinWords, format, path)
}

// contracts returns what goes into the lock file, and its path: the capabilities
// of each member, and of the peers outside the fleet whose files it has, sorted
// by address so that the lock file does not depend on the order of the members.
func contracts(env *cli.Env, path string) (docs []*capability.Document, lock string, err error) {
	f, err := env.LoadFleet(fleet.LoadOptions{})
	if err != nil {
		return nil, "", err
	}
	if path == "" {
		path = filepath.Join(f.Root, LockName)
	}
	add := func(d *capability.Document) {
		if d != nil && !slices.ContainsFunc(docs, func(have *capability.Document) bool { return have.Agent == d.Agent }) {
			docs = append(docs, d)
		}
	}
	// Members first: where a member is also somebody's peer, its own file counts.
	for _, m := range f.Members {
		add(m.Capabilities)
	}
	for _, m := range f.Members {
		for _, p := range m.Peers {
			add(p.Document)
		}
	}
	slices.SortFunc(docs, func(x, y *capability.Document) int { return strings.Compare(string(x.Agent), string(y.Agent)) })
	return docs, path, nil
}

// replaceFile writes a file atomically: a reader sees the old content or the
// new one, and a failed write leaves the old one in place.
func replaceFile(path string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	// CreateTemp makes files that only their owner can read; a lock file is checked
	// in and read by everyone.
	err = errors.Join(err, tmp.Chmod(0o644), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}
