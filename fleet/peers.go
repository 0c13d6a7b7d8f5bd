package fleet

import (
	"fmt"
	"path/filepath"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/strictyaml"
)

// peerEntry is one peer as a peers file declares it.
type peerEntry struct {
	Peer
	pin   pin
	pinAt strictyaml.Value
}

// pin is a capabilities file that a peers file names.
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

// decodePeer reads one peer. base is the peers file's directory.
func decodePeer(v strictyaml.Value, base string, p paths) peerEntry {
	o := v.Object()
	defer o.Done()
	entry := peerEntry{
		Peer: Peer{
			Address:          capability.DecodeAddress(o.Need("agent")),
			Transports:       capability.DecodeTransports(o.Need("transports"), capability.PeerSide),
			Auth:             decodeAuth(o.Get("auth")),
			MinSchemaVersion: o.Get("minSchemaVersion").Text(),
			Position:         v.Position(),
		},
		pinAt: o.Get("capabilities"),
	}
	entry.pin = pin{path: p.inside(entry.pinAt, base), agent: entry.Address}
	return entry
}

// decodeAuth reads a peer's auth block; nil without one.
func decodeAuth(v strictyaml.Value) *PeerAuth {
	if !v.Present() {
		return nil
	}
	o := v.Object()
	a := &PeerAuth{Provider: Provider(o.Need("provider").Enum(string(OIDC), string(OAuth2Client), string(HMAC)))}
	switch a.Provider {
	case OIDC:
		a.Issuer = o.Need("issuer").Text()
		a.Audience = o.Need("audience").Text()
		a.JWKSURI = o.Get("jwksUri").Text()
	case OAuth2Client:
		a.TokenEndpoint = o.Need("tokenEndpoint").Text()
		a.ClientID = o.Need("clientId").Text()
		a.ClientSecretRef = o.Need("clientSecretRef").Text()
		a.JWKSURI = o.Get("jwksUri").Text()
		a.Issuer = o.Get("issuer").Text()
		a.Audience = o.Get("audience").Text()
	case HMAC:
		a.KeyID = o.Need("keyId").Text()
		a.SecretRef = o.Need("secretRef").Text()
	default:
		return a // the fault is recorded; which keys belong here is unknown
	}
	a.Scopes = o.Get("scopes").Texts()
	o.Done()
	return a
}
