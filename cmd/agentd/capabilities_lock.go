package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/capability/compat"
	"github.com/agentd/agentd/fleet"
)

// lockName is the lock file beside fleet.yaml.
const lockName = "agentd.lock.json"

func (a *app) capabilitiesLockCommand() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "lock",
		Short: "Write down the full contracts of every peer, for `capabilities check`",
		Args:  cobra.NoArgs,
		RunE: a.do(func(context.Context, []string) error {
			docs, at, err := a.lockable(path)
			if err != nil {
				return err
			}
			data, err := compat.NewLock(docs...).Encode()
			if err != nil {
				return err
			}
			if err := replaceFile(at, data); err != nil {
				return err
			}
			fmt.Fprintf(a.stderr, "✓ locked %d agents in %s\n", len(docs), at)
			return nil
		}),
	}
	cmd.Flags().StringVar(&path, "lock", "", "the lock file (default: "+lockName+" beside fleet.yaml)")
	return cmd
}

func (a *app) capabilitiesCheckCommand() *cobra.Command {
	var path, format string
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Explain what has changed since `capabilities lock`; exit status 3 when it breaks callers",
		Args:  cobra.NoArgs,
		RunE: a.do(func(context.Context, []string) error {
			docs, at, err := a.lockable(path)
			if err != nil {
				return err
			}
			lock, err := compat.ReadLock(at)
			if err != nil {
				return err
			}
			return a.writeCompat(lock.Check(docs...), format, at)
		}),
	}
	cmd.Flags().StringVar(&path, "lock", "", "the lock file (default: "+lockName+" beside fleet.yaml)")
	cmd.Flags().StringVarP(&format, "output", "o", "text", "text, json, sarif or junit")
	return cmd
}

// lockable is what every agent of the fleet offers, and its peers from elsewhere
// whose files it knows, by address; and where the lock file is.
func (a *app) lockable(path string) (docs []*capability.Document, lock string, err error) {
	f, err := a.loadFleet(fleet.LoadOptions{})
	if err != nil {
		return nil, "", err
	}
	if path == "" {
		path = filepath.Join(f.Root, lockName)
	}
	add := func(d *capability.Document) {
		if d != nil && !slices.ContainsFunc(docs, func(have *capability.Document) bool { return have.Agent == d.Agent }) {
			docs = append(docs, d)
		}
	}
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

// replaceFile writes a file whole or not at all.
func replaceFile(path string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Chmod(0o644), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}
