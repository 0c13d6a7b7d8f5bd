package fleet

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/strictyaml"
)

// peerEntry is one peer as a peers file declares it, before its capabilities
// are known.
type peerEntry struct {
	Peer
	pin   pin
	pinAt strictyaml.Value
}

// pin identifies a capabilities file that a peers file names, and the agent
// that it must declare.
type pin struct {
	path  string // absolute; "" is none
	agent envelope.Address
}

// decodePeers reads rpc-peers.yaml at an absolute path.
func decodePeers(file *strictyaml.File, path string, p paths) []peerEntry {
	o := file.Root().Object()
	decodeVersion(o.Need("version"))
	var peers []peerEntry
	first := make(map[envelope.Address]int)
	for _, item := range o.Need("peers").List() {
		entry := decodePeer(item, filepath.Dir(path), p)
		if entry.Address == "" {
			continue
		}
		if line, dup := first[entry.Address]; dup {
			item.Fault(fmt.Sprintf("duplicate peer entry for %s, first on line %d", entry.Address, line), "")
			continue
		}
		first[entry.Address] = entry.Position.Line
		peers = append(peers, entry)
	}
	o.Done()
	return peers
}

// decodeMinVersion reads a version that a peer's capabilities must have at least.
func decodeMinVersion(v strictyaml.Value) string {
	text := v.Text()
	if _, ok := capability.ParseSchemaVersion(text); v.Present() && text != "" && !ok {
		v.Fault(fmt.Sprintf("%q is no version: nothing could be compared with it", text), "up to four numbers, such as 1.2 or v1.2.0")
	}
	return text
}

// decodePeer reads one peer. base is the peers file's directory.
func decodePeer(v strictyaml.Value, base string, p paths) peerEntry {
	o := v.Object()
	defer o.Done()
	entry := peerEntry{
		Peer: Peer{
			Address:          capability.DecodeAddress(o.Need("agent")),
			Transports:       capability.DecodeTransports(o.Need("transports"), capability.PeerSide),
			Auth:             decodeAuth(o.Get("auth")),
			ReplyTopics:      decodeReplyTopics(o.Get("replyTopics")),
			Tenants:          decodeTenants(o.Get("tenants"), false),
			MinSchemaVersion: decodeMinVersion(o.Get("minSchemaVersion")),
			Position:         v.Position(),
		},
		pinAt: o.Get("capabilities"),
	}
	entry.pin = pin{path: p.inside(entry.pinAt, base), agent: entry.Address}
	return entry
}

// decodeReplyTopics reads where a peer takes answers. Subjects that start with $ are
// those of the broker itself, and a wildcard in the middle would cover other agents.
func decodeReplyTopics(v strictyaml.Value) []string {
	var topics []string
	for _, item := range v.List() {
		topic := item.Text()
		if topic == "" {
			continue // a fault already
		}
		parts := strings.Split(strings.TrimSuffix(topic, ".>"), ".")
		if strings.HasPrefix(topic, "$") || slices.Contains(parts, "") || strings.ContainsAny(strings.Join(parts, ""), "*> \t\r\n") || topic == "_INBOX.>" {
			item.Fault(fmt.Sprintf("%q is no topic of one agent", topic), "write a whole topic, or one with .> at its end")
			continue
		}
		topics = append(topics, topic)
	}
	return topics
}
