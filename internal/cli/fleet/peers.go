package fleet

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
)

// A PeersRequest is one `agentd fleet peers`.
type PeersRequest struct {
	// Only are the addresses of the peers to show; none means all.
	Only []string
	// As is the calling agent; "" means all.
	As string
	// Verify asks the peers what they offer now.
	Verify bool
}

// A peer is one peer of one agent.
type peer struct {
	Agent string `json:"agent"`
	control.PeerStatus
}

// Peers prints the peers of the members: what the files say, or with Verify what
// the running agents find. The error is then a finding when a peer is not
// reachable, or has drifted.
func Peers(ctx context.Context, env *cli.Env, r PeersRequest) error {
	only := make([]envelope.Address, len(r.Only))
	for i, text := range r.Only {
		var err error
		if only[i], err = envelope.ParseAddress(string(envelope.AddressFor(text))); err != nil {
			return cli.Usage("%v", err)
		}
	}
	list := listPeers
	if r.Verify {
		list = verifyPeers
	}
	peers, err := list(ctx, env, r.As, only)
	if err != nil {
		return err
	}
	if err := writePeers(env, peers); err != nil {
		return err
	}
	if r.Verify && slices.ContainsFunc(peers, func(p peer) bool { return p.State != control.PeerReachable }) {
		return cli.Finding(nil)
	}
	return nil
}

// listPeers returns what the files say. Nobody is asked.
func listPeers(_ context.Context, env *cli.Env, as string, only []envelope.Address) ([]peer, error) {
	f, err := env.LoadFleet(fleet.LoadOptions{InspectOnly: true})
	if err != nil {
		return nil, err
	}
	members := f.Members
	if as != "" {
		m, ok := f.Member(as)
		if !ok {
			return nil, cli.Usage("--as: the fleet has no agent %q", as)
		}
		members = []*fleet.Member{m}
	}
	var peers []peer
	for _, m := range members {
		for _, p := range m.Peers {
			// A peers file may list the agent that reads it, since several agents
			// may share one file.
			if p.Address == m.Address || len(only) > 0 && !slices.Contains(only, p.Address) {
				continue
			}
			// Loading guarantees at least one transport, in order of preference.
			preferred := p.Transports[0]
			row := peer{m.ID, control.PeerStatus{
				Peer: p.Address, Transport: string(preferred.Kind), Subject: preferred.Requests, External: !p.InFleet, State: control.PeerNotProbed,
			}}
			if !p.InFleet {
				row.State = control.PeerExternal
			}
			if p.Document != nil {
				row.Digest = p.Document.Digest()
			}
			peers = append(peers, row)
		}
	}
	return peers, nil
}

// verifyPeers has the running agents ask their peers. Only the agents can: they
// hold the keys and connections that the peers accept.
func verifyPeers(ctx context.Context, env *cli.Env, as string, only []envelope.Address) ([]peer, error) {
	var peers []peer
	err := env.EachRunning(ctx, as, func(id string, client *control.Client) error {
		found, err := client.VerifyPeers(ctx, only)
		for _, p := range found {
			peers = append(peers, peer{id, p})
		}
		return err
	})
	return peers, err
}

// writePeers prints one row for each peer of each agent. Latency, instances and
// version are unknown without --verify.
func writePeers(env *cli.Env, peers []peer) error {
	if env.Format != output.Table {
		return cli.WriteList(env, peers)
	}
	rows := make([][]string, len(peers))
	for i, p := range peers {
		latency, instances, version := "-", "-", "-"
		if p.LatencyMs > 0 {
			latency = fmt.Sprintf("%.1f ms", p.LatencyMs)
		}
		if p.Instances > 0 {
			instances, version = strconv.Itoa(p.Instances), p.Version
		}
		rows[i] = []string{
			p.Agent, string(p.Peer), p.Transport, p.Subject, p.status(), latency, instances, version, shortDigest(p.Digest), p.note(),
		}
	}
	return env.WriteTable([]string{"AGENT", "PEER", "TRANSPORT", "SUBJECT", "STATUS", "LATENCY", "INSTANCES", "VERSION", "DIGEST", "NOTE"}, rows)
}

// status returns the state of a peer in words.
func (p *peer) status() string {
	if p.NoContract {
		return string(p.State) + " (publishes no contract)"
	}
	return string(p.State)
}

// note returns the one thing about a peer that the user should look at first.
func (p *peer) note() string {
	switch {
	case p.Error != "":
		return p.Error
	case p.WrongClock(0):
		return p.ClockText()
	case p.Drifts != nil:
		return "another contract of " + strings.Join(p.Differ, ", ") + ": " + p.Drifts[0].Reason
	case p.Differ != nil: // from an agent that does not say more
		return "another contract of " + strings.Join(p.Differ, ", ")
	case len(p.Contracts) > 1:
		return fmt.Sprintf("its replicas offer %d different contracts", len(p.Contracts))
	case p.Unusable != nil:
		const most = 5 // the peer determines how many there are
		names := strings.Join(p.Unusable[:min(most, len(p.Unusable))], ", ")
		if more := len(p.Unusable) - most; more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		return "offers " + names + ", which this agent's copy of its file lacks"
	case p.External:
		return "no member of the fleet"
	}
	return ""
}

// shortDigest shortens a digest to what people compare by eye. A peer sends its
// digest itself, so it may be any text.
func shortDigest(digest string) string {
	const digits = 12
	algorithm, hex, ok := strings.Cut(digest, ":")
	switch {
	case digest == "":
		return "-"
	case !ok || len(hex) < digits:
		return digest
	}
	return algorithm + ":" + hex[:digits]
}
