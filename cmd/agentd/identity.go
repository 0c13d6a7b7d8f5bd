package main

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/internal/output"
)

func (a *app) identityCommand() *cobra.Command {
	cmd := a.group(&cobra.Command{
		Use:   "identity",
		Short: "The keys with which agents prove who they are",
		Long: "The keys with which agents prove who they are. Each agent keeps its own in its state folder, readable\n" +
			"by its owner alone; what others need to know of them stands in identities.yaml beside fleet.yaml.",
	})
	cmd.AddCommand(a.identityListCommand(), a.identityPublishCommand(), a.identityRotateCommand())
	return cmd
}

// An identityRow is one key of one agent, without its secret half.
type identityRow struct {
	Agent     string    `json:"agent"`
	PublicKey string    `json:"publicKey"`
	State     string    `json:"state"`
	Created   time.Time `json:"created"`
	NotBefore time.Time `json:"notBefore,omitzero"`
	NotAfter  time.Time `json:"notAfter,omitzero"`
	Published bool      `json:"published"` // others know it, from identities.yaml
	File      string    `json:"file"`
}

func (a *app) identityListCommand() *cobra.Command {
	var agents []string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the public keys of the agents that run here",
		Args:  cobra.NoArgs,
	}
	cmd.Flags().StringSliceVar(&agents, "agent", nil, "only these agents (default: every member)")
	cmd.RunE = a.do(func(context.Context, []string) error {
		f, stores, err := a.identityStores(agents)
		if err != nil {
			return err
		}
		var rows []identityRow
		for _, s := range stores {
			keys, err := s.Keys()
			if err != nil {
				return err
			}
			rows = append(rows, identityRows(f, s, keys)...)
		}
		return a.writeIdentities(rows)
	})
	return cmd
}

// An identityStore is where one member keeps its keys.
type identityStore struct {
	identity.Store
	member *fleet.Member
}

// identityStores loads the fleet, and finds the keys of the named members, or of all.
func (a *app) identityStores(agents []string) (*fleet.Fleet, []identityStore, error) {
	f, err := a.loadFleet(fleet.LoadOptions{InspectOnly: true})
	if err != nil {
		return nil, nil, err
	}
	paths, err := a.paths(f)
	if err != nil {
		return nil, nil, err
	}
	var stores []identityStore
	for _, m := range f.Members {
		if len(agents) == 0 || slices.Contains(agents, m.ID) {
			stores = append(stores, identityStore{identity.Store{Path: paths.Identity(m.ID)}, m})
		}
	}
	for _, id := range agents {
		if _, ok := f.Member(id); !ok {
			return nil, nil, usage("--agent: the fleet has no agent %q", id)
		}
	}
	return f, stores, nil
}

func identityRows(f *fleet.Fleet, s identityStore, keys []identity.OwnKey) []identityRow {
	var rows []identityRow
	for _, k := range keys {
		row := identityRow{
			Agent: s.member.ID, PublicKey: k.Public, State: "active", Created: k.Created,
			NotBefore: k.Window.NotBefore, NotAfter: k.Window.NotAfter, File: s.Path,
		}
		switch now := time.Now(); {
		case now.Before(row.NotBefore):
			row.State = "next"
		case !row.NotAfter.IsZero() && now.After(row.NotAfter):
			row.State = "expired"
		case !row.NotAfter.IsZero():
			row.State = "retiring"
		}
		for _, id := range f.Identities {
			row.Published = row.Published || id.Agent == s.member.Address &&
				slices.ContainsFunc(id.Auth.PublicKeys, func(p fleet.PublicKey) bool { return p.Key == k.Public })
		}
		rows = append(rows, row)
	}
	return rows
}

func (a *app) writeIdentities(rows []identityRow) error {
	if a.output != output.Table {
		if rows == nil {
			rows = []identityRow{}
		}
		return output.WriteJSON(a.stdout, a.output, rows)
	}
	var cells [][]string
	for _, r := range rows {
		since, until := r.Created, ""
		if !r.NotBefore.IsZero() {
			since = r.NotBefore
		}
		if !r.NotAfter.IsZero() {
			until = r.NotAfter.Format(time.RFC3339)
		}
		cells = append(cells, []string{
			r.Agent, r.State, strconv.FormatBool(r.Published), since.Format(time.RFC3339), until, r.PublicKey,
		})
	}
	return output.WriteTable(a.stdout, []string{"AGENT", "STATE", "PUBLISHED", "SINCE", "UNTIL", "PUBLIC KEY"}, cells)
}
