package scaffold

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/yamledit"
)

// place makes the files of the tree below a folder, all of them or none, and returns their
// paths. It overwrites nothing.
func (t *tree) place(ctx context.Context, root string) (files []string, err error) {
	_, statErr := os.Stat(root)
	if err := makeFolder(root); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil && errors.Is(statErr, fs.ErrNotExist) {
			_ = os.Remove(root) // which was not there; what somebody has put into it meanwhile keeps it
		}
	}()
	temp, err := os.MkdirTemp(root, ".agentd-init-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	if err := t.write(temp); err != nil {
		return nil, err
	}
	var taken []string
	err = filepath.WalkDir(temp, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(temp, path)
		if err != nil {
			return err
		}
		switch _, there := os.Lstat(filepath.Join(root, name)); {
		case errors.Is(there, fs.ErrNotExist):
			files = append(files, filepath.ToSlash(name))
		case there != nil: // such as a file where a folder is to be
			taken = append(taken, name)
		case !t.may[filepath.ToSlash(name)]:
			taken = append(taken, name)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case len(taken) > 0:
		return nil, fmt.Errorf("nothing was written: these files are there already:\n  %s", strings.Join(taken, "\n  "))
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	for i, name := range files {
		if err := move(filepath.Join(temp, filepath.FromSlash(name)), filepath.Join(root, filepath.FromSlash(name))); err != nil {
			return nil, errors.Join(err, remove(root, files[:i]))
		}
	}
	return files, nil
}

// makeFolder makes a folder of sources, which other users may read as far as the umask allows:
// skills may run as one of them.
func makeFolder(path string) error {
	return os.MkdirAll(path, 0o755) //nolint:gosec // see above
}

// move gives a file its place, which nobody has taken since it was looked at.
func move(from, to string) error {
	if err := makeFolder(filepath.Dir(to)); err != nil {
		return err
	}
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: somebody else has written it meanwhile", to)
	}
	return os.Rename(from, to)
}

// remove takes files back, with the folders that are empty without them.
func remove(root string, files []string) (err error) {
	for _, name := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		err = errors.Join(err, os.Remove(path))
		for dir := filepath.Dir(path); dir != root; dir = filepath.Dir(dir) {
			if os.Remove(dir) != nil {
				break // it holds something else
			}
		}
	}
	return err
}

// write makes the files below a folder, generates the clients, and checks what it can.
func (t *tree) write(dir string) error {
	for _, name := range slices.Sorted(maps.Keys(t.files)) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := makeFolder(filepath.Dir(path)); err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if strings.HasSuffix(name, ".sh") {
			mode = 0o755
		}
		if err := os.WriteFile(path, t.files[name], mode); err != nil {
			return err
		}
	}
	for name, to := range t.links {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := makeFolder(filepath.Dir(path)); err != nil {
			return err
		}
		if err := os.Symlink(filepath.FromSlash(to), path); err != nil {
			return err
		}
	}
	for _, c := range t.clients {
		doc, err := capability.LoadWith(filepath.Join(dir, "agents", c.of, "capabilities.yaml"), cli.FileOptions())
		if err != nil {
			return err
		}
		file, err := generate(c.lang, doc)
		if err != nil {
			return err
		}
		if err := file.Write(filepath.Join(dir, "agents", c.dir, "generated"), c.of); err != nil {
			return err
		}
	}
	return nil
}

// join adds an agent to fleet.yaml and to the file of peers that the others have. What is
// refused changes neither.
func join(f *fleet.Fleet, a *agent) error {
	member := yamledit.Map("id", yamledit.Text(a.ID), "path", yamledit.Text("./agents/"+a.ID))
	peers := filepath.Join(f.Root, "rpc-peers.yaml")
	if len(f.Members) > 0 {
		first := f.Members[0]
		if first.Env != "" && first.Env != "default" {
			yamledit.Set(member, "env", yamledit.Text(first.Env))
		}
		if first.PeersFile != "" {
			peers = first.PeersFile
		}
	}
	transports := &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{
		yamledit.Map("kind", yamledit.Text("memory"), "topics", yamledit.Map("requests", yamledit.Text("agents."+a.ID+".requests"))),
		yamledit.Map("kind", yamledit.Text("nats"),
			"servers", &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle, Content: []*yaml.Node{yamledit.Text("nats://127.0.0.1:4222")}},
			"subjects", yamledit.Map("requests", yamledit.Text(a.Fleet+"."+a.ID+".requests"))),
	}}
	var undo []func() error
	edits := []struct {
		path, key string
		item      *yaml.Node
	}{
		{peers, "peers", yamledit.Map("agent", yamledit.Text("agent://"+a.ID), "transports", transports)},
		{filepath.Join(f.Root, fleet.ManifestName), "agents", member}, // last: a fleet that runs finds all the rest
	}
	fail := func(err error) error {
		for _, u := range slices.Backward(undo) {
			err = errors.Join(err, u())
		}
		return err
	}
	for _, e := range edits {
		before, err := os.ReadFile(e.path)
		if err != nil {
			return fail(err)
		}
		file, err := yamledit.Parse(before)
		if err == nil {
			err = file.AppendItem(e.key, e.item)
		}
		if err != nil {
			return fail(fmt.Errorf("%s: %w", e.path, err))
		}
		if err := replace(e.path, file.Bytes()); err != nil {
			return fail(err)
		}
		undo = append(undo, func() error { return replace(e.path, before) })
	}
	if _, err := fleet.Load(f.Root, cli.FleetOptions(fleet.LoadOptions{})); err != nil {
		return fail(fmt.Errorf("with %s the fleet cannot be loaded, so that its files are as before: %w", a.ID, err))
	}
	return nil
}

// replace writes a file that is there, in one step for whoever reads it meanwhile.
func replace(path string, text []byte) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	next := path + ".new"
	if err := os.WriteFile(next, text, info.Mode().Perm()); err != nil {
		return err
	}
	if err := os.Rename(next, path); err != nil {
		return errors.Join(err, os.Remove(next))
	}
	return nil
}
