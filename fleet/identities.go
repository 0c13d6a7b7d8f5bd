package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/strictyaml"
)

// IdentitiesName is the file beside fleet.yaml that declares how agents prove
// their identity to the members. A peers file covers the agents that a member
// calls; this file also covers those that call it.
const IdentitiesName = "identities.yaml"

// An Identity describes how one agent proves who it is.
type Identity struct {
	// Agent is whose identity it is. It need not be a member.
	Agent envelope.Address
	// Auth is the mechanism and its keys. Never nil.
	Auth *PeerAuth
}

// Identity returns how an agent proves its identity to a member. The member's
// peers file comes first, and then identities.yaml, which also supplies
// public keys that the peers file leaves out. Nil means that the agent has no
// known identity.
func (f *Fleet) Identity(m *Member, a envelope.Address) *PeerAuth {
	var auth *PeerAuth
	if p, ok := m.Peer(a); ok {
		auth = p.Auth
	}
	if auth != nil && (auth.Provider != NKey || auth.PublicKeys != nil) {
		return auth
	}
	if known, ok := f.identities[a]; ok {
		return known
	}
	return auth
}

// readIdentities reads identities.yaml. A fleet without the file has no
// identities.
func (l *loader) readIdentities(f *Fleet) {
	path := filepath.Join(f.Root, IdentitiesName)
	file, err := strictyaml.ReadFile(path, l.name(path))
	if errors.Is(err, fs.ErrNotExist) || l.failed(err) {
		return
	}
	f.Identities = decodeIdentities(file)
	f.identities = make(map[envelope.Address]*PeerAuth, len(f.Identities))
	for _, id := range f.Identities {
		f.identities[id.Agent] = id.Auth
	}
	l.failed(file.Err())
}

// decodeIdentities reads the entries. One that is faulty or repeats an agent is
// left out.
func decodeIdentities(file *strictyaml.File) []Identity {
	o := file.Root().Object()
	defer o.Done()
	decodeVersion(o.Need("version"))
	var all []Identity
	first := map[envelope.Address]int{}
	for _, item := range o.Need("identities").List() {
		e := item.Object()
		id := Identity{Agent: capability.DecodeAddress(e.Need("agent")), Auth: decodeAuth(e.Need("auth"))}
		e.Done()
		switch line, dup := first[id.Agent]; {
		case id.Agent == "" || id.Auth == nil: // said already
		case dup:
			item.Fault(fmt.Sprintf("duplicate identity of %s, first on line %d", id.Agent, line), "")
		case id.Auth.Provider == NKey && id.Auth.PublicKeys == nil:
			item.Fault(fmt.Sprintf("%s has no public key", id.Agent), "`agentd identity publish` writes those of agents that run here")
		default:
			first[id.Agent] = item.Position().Line
			all = append(all, id)
		}
	}
	return all
}

// checkIdentities reports peers whose auth block names the provider nkey
// while neither file has their public key: nothing that such a peer sends
// could be verified.
func (l *loader) checkIdentities(f *Fleet) {
	var faults []Fault
	read := map[string]bool{} // members share peers files
	for _, m := range f.Members {
		if read[m.PeersFile] {
			continue
		}
		read[m.PeersFile] = true
		for _, p := range m.Peers {
			auth := f.Identity(m, p.Address)
			if auth == nil || auth.Provider != NKey || auth.PublicKeys != nil {
				continue
			}
			faults = append(faults, Fault{
				Position: auth.Position, Message: fmt.Sprintf("nothing gives the public key of %s", p.Address),
				Hint: "write publicKey here, or let `agentd identity publish` write " + IdentitiesName,
			})
		}
	}
	if faults != nil {
		l.failed(&strictyaml.Error{Faults: faults})
	}
}

// WriteIdentities replaces the fleet's identities.yaml. Every Auth must have
// the provider NKey or HMAC. The new file is written aside, synced and
// renamed, so a crash or an error leaves the old one in place.
func WriteIdentities(root string, all []Identity) (err error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# How agents prove themselves. `agentd identity publish` keeps the keys of agents that run here up to date.\n")
	// Written by hand rather than by a YAML library, so that comments and order are
	// always the same and a diff shows what changed.
	fmt.Fprintf(&b, "version: 1\nidentities:\n")
	for _, id := range all {
		fmt.Fprintf(&b, "  - agent: %q\n    auth:\n      provider: %s\n", id.Agent, id.Auth.Provider)
		switch id.Auth.Provider {
		case NKey:
			fmt.Fprintf(&b, "      publicKeys:\n")
			for _, k := range id.Auth.PublicKeys {
				fmt.Fprintf(&b, "        - key: %s\n", k.Key)
				writeWindow(&b, k.NotBefore, k.NotAfter)
			}
		case HMAC:
			fmt.Fprintf(&b, "      keys:\n")
			for _, k := range id.Auth.Secrets {
				fmt.Fprintf(&b, "        - keyId: %q\n          secretRef: %q\n", k.KeyID, k.Ref)
				writeWindow(&b, k.NotBefore, k.NotAfter)
			}
		default:
			return fmt.Errorf("fleet: identities: %s has the provider %s, which cannot be written", id.Agent, id.Auth.Provider)
		}
	}
	if len(all) == 0 {
		b.WriteString("  []\n")
	}
	path := filepath.Join(root, IdentitiesName)
	f, err := os.CreateTemp(root, ".identities-*")
	if err != nil {
		return fmt.Errorf("fleet: %w", err)
	}
	const readable = 0o644 // public keys, and names of secrets
	// CreateTemp makes files that only their owner can read, but this one is
	// shared.
	_, err = f.Write(b.Bytes())
	if err = errors.Join(err, f.Chmod(readable), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("fleet: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

// writeWindow writes the bounds that are set, quoted, since YAML 1.1 readers take a
// bare time for a date.
func writeWindow(b *bytes.Buffer, notBefore, notAfter time.Time) {
	if !notBefore.IsZero() {
		fmt.Fprintf(b, "          notBefore: %q\n", notBefore.UTC().Format(time.RFC3339))
	}
	if !notAfter.IsZero() {
		fmt.Fprintf(b, "          notAfter: %q\n", notAfter.UTC().Format(time.RFC3339))
	}
}
