package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/output"
)

func (a *app) fleetPeersCommand() *cobra.Command {
	var as string
	var verify bool
	cmd := &cobra.Command{
		Use:   "peers [agent://id]…",
		Short: "List the members' peers, and whether they can be reached",
		Long: "List whom the members call, and how. With --verify the running agents ask each of their peers,\n" +
			"in their own name and by their own transports, what it offers now: reachable is a peer that\n" +
			"answers and offers what the caller was built against, drifted one that offers something else,\n" +
			"unreachable one that does not answer. Without it a peer is not-yet-probed, or external: no member\n" +
			"of the fleet.\n\n" +
			"With --verify the exit status is 3 when a peer is not reachable, or has drifted.",
		Example: "  agentd fleet peers\n" +
			"  agentd fleet peers --verify --as concierge -o json",
		RunE: a.do(func(ctx context.Context, args []string) error {
			only := make([]envelope.Address, len(args))
			for i, arg := range args {
				var err error
				if only[i], err = envelope.ParseAddress(arg); err != nil {
					return usage("%v", err)
				}
			}
			if verify {
				return a.verifyPeers(ctx, as, only)
			}
			rows, err := a.listPeers(as, only)
			if err != nil {
				return err
			}
			return a.writePeers(rows)
		}),
	}
	cmd.Flags().StringVar(&as, "as", "", "the calling agent (default: all members; with --verify, those that run here)")
	cmd.Flags().BoolVar(&verify, "verify", false, "ask the peers")
	return cmd
}

// A peerRow is one peer of one agent.
type peerRow struct {
	Agent string `json:"agent"`
	control.PeerStatus
}

// listPeers is what the files say.
func (a *app) listPeers(as string, only []envelope.Address) ([]peerRow, error) {
	f, err := a.loadFleet(fleet.LoadOptions{InspectOnly: true})
	if err != nil {
		return nil, err
	}
	members := f.Members
	if as != "" {
		m, ok := f.Member(as)
		if !ok {
			return nil, usage("--as: the fleet has no agent %q", as)
		}
		members = []*fleet.Member{m}
	}
	rows := []peerRow{}
	for _, m := range members {
		for _, p := range m.Peers {
			if p.Address == m.Address || len(only) > 0 && !slices.Contains(only, p.Address) {
				continue
			}
			first := p.Transports[0]
			row := peerRow{m.ID, control.PeerStatus{
				Peer: p.Address, Transport: string(first.Kind), Subject: first.Requests, External: !p.InFleet, State: control.PeerNotProbed,
			}}
			if !p.InFleet {
				row.State = control.PeerExternal
			}
			if p.Document != nil {
				row.Digest = p.Document.Digest()
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// verifyPeers has the running agents ask.
func (a *app) verifyPeers(ctx context.Context, as string, only []envelope.Address) error {
	rows := []peerRow{}
	err := a.eachRunning(ctx, as, func(id string, client *control.Client) error {
		peers, err := client.VerifyPeers(ctx, only)
		for _, p := range peers {
			rows = append(rows, peerRow{id, p})
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := a.writePeers(rows); err != nil {
		return err
	}
	if slices.ContainsFunc(rows, func(r peerRow) bool { return r.State != control.PeerReachable }) {
		return &exitError{code: exitFinding}
	}
	return nil
}

func (a *app) writePeers(rows []peerRow) error {
	if a.output != output.Table {
		return writeList(a, rows)
	}
	cells := make([][]string, len(rows))
	for i, r := range rows {
		note := r.Error
		switch {
		case note != "":
		case r.Differ != nil:
			note = "another contract of " + strings.Join(r.Differ, ", ")
		case r.External:
			note = "no member of the fleet"
		}
		latency := "-"
		if r.LatencyMs > 0 {
			latency = fmt.Sprintf("%.1f ms", r.LatencyMs)
		}
		replicas, version := "-", "-"
		if r.Instances > 0 {
			replicas, version = strconv.Itoa(r.Instances), output.Printable(r.Version)
		}
		cells[i] = []string{
			r.Agent, string(r.Peer), r.Transport, output.Printable(r.Subject), string(r.State), latency, replicas, version, shortDigest(r.Digest), output.Printable(note),
		}
	}
	return output.WriteTable(a.stdout, []string{"AGENT", "PEER", "TRANSPORT", "SUBJECT", "STATUS", "LATENCY", "INSTANCES", "VERSION", "DIGEST", "NOTE"}, cells)
}

// shortDigest is enough of a digest to tell it from others by eye.
func shortDigest(digest string) string {
	algorithm, hex, ok := strings.Cut(digest, ":")
	switch {
	case digest == "":
		return "-"
	case !ok || len(hex) < 12:
		return output.Printable(digest)
	}
	return output.Printable(algorithm + ":" + hex[:12])
}
