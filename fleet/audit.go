package fleet

import (
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/note"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/strictyaml"
)

const (
	// DefaultCaptureBytes is [Audit.CaptureBytes] if the file does not set
	// it.
	DefaultCaptureBytes = 16 << 10
	// maxCaptureBytes keeps a record with a captured payload below the
	// largest record that the audit log accepts.
	maxCaptureBytes = 256 << 10
)

// Audit configures a member's audit log.
type Audit struct {
	// Witnesses are the peers that store and co-sign the log's newest
	// checkpoint. By default there are none.
	Witnesses []Witness
	// WitnessQuorum is how many of them must have co-signed for the log to count as
	// witnessed, from 1 to their number. By default all must.
	WitnessQuorum int
	// Capture names capabilities, the member's own or those that it calls. A
	// payload of theirs that violates its schema is stored in the record. By
	// default no record holds a payload value.
	Capture []string
	// CaptureBytes bounds one captured payload; of a larger one, only the
	// size is recorded. The default is 16 KiB.
	CaptureBytes int
	// FailOpen lets calls continue while records cannot be written; lost
	// records are counted, and the count is recorded later. By default such
	// calls are refused. A schema violation is recorded before its call ends
	// in either case.
	FailOpen bool
}

// A Witness is one entry of the key audit.witnesses.
type Witness struct {
	// Address is the peer's.
	Address envelope.Address
	// Keys are its pinned verifier keys: lines of the .pub file of its own audit log.
	// Without any, nobody can tell who has signed in its name.
	Keys []string
	// Position is where the file names it.
	Position Position
}

// Captures reports whether payloads of a capability are kept.
func (a *Audit) Captures(capability string) bool { return slices.Contains(a.Capture, capability) }

// decodeAudit reads the block audit. Of the reference runtime's keys in it, those
// that configure its exporters are carried.
func decodeAudit(v strictyaml.Value) (a Audit, ignored []IgnoredKey) {
	a.CaptureBytes = DefaultCaptureBytes
	if !v.Present() {
		return a, nil
	}
	o := v.Object()
	defer o.Done()
	for _, item := range o.Get("witnesses").List() {
		w := decodeWitness(item)
		if slices.ContainsFunc(a.Witnesses, func(other Witness) bool { return other.Address == w.Address }) {
			item.Fault(fmt.Sprintf("the witness %s is listed twice", w.Address), "")
		}
		a.Witnesses = append(a.Witnesses, w)
	}
	if q := o.Get("witnessQuorum"); q.Present() {
		a.WitnessQuorum = int(q.Int(1, int64(max(1, len(a.Witnesses)))))
		if len(a.Witnesses) == 0 {
			q.Fault("there are no witnesses", "name them in audit.witnesses")
		}
	}
	a.Capture = o.Get("capture").Texts()
	if n := o.Get("captureMaxBytes").Int(1, maxCaptureBytes); n != 0 {
		a.CaptureBytes = int(n)
	}
	a.FailOpen = o.Get("onFailure").Enum("closed", "open") == "open"
	refuse(v, map[string]string{
		"retention":    "`agentd audit prune --older-than` removes records; run it as often as the time demands",
		"backpressure": "audit.onFailure decides what happens while records cannot be written",
	})
	o.PassOver("retention", "backpressure")
	return a, ignore(o, "audit.", "export", "exporters")
}

// decodeWitness reads one witness: its address, or a mapping of agent and keys.
func decodeWitness(item strictyaml.Value) Witness {
	w := Witness{Position: item.Position()}
	name := item
	if item.Kind() == strictyaml.Map {
		o := item.Object()
		defer o.Done()
		name = o.Need("agent")
		for _, key := range o.Get("keys").AtLeastOne("key of the witness").List() {
			text := key.Text()
			if _, err := note.NewVerifier(text); err != nil && text != "" {
				key.Fault(fmt.Sprintf("%q is no verifier key", text), "give a line of the .pub file of the witness's own audit log")
			}
			w.Keys = append(w.Keys, text)
		}
	}
	text := name.Text()
	address, err := envelope.ParseAddress(text)
	if err != nil && text != "" {
		name.Fault(err.Error(), "name a peer of this agent, such as agent://librarian")
	}
	w.Address = address
	return w
}

// checkWitnesses reports witnesses that are no peers. A member can only send
// a checkpoint to an agent that it knows how to reach. The error is a
// [*strictyaml.Error].
func (m *Member) checkWitnesses() error {
	if m.Agent == nil {
		return nil // which is a fault of its own
	}
	var faults []Fault
	for _, w := range m.Agent.Audit.Witnesses {
		if _, ok := m.Peer(w.Address); w.Address != "" && (!ok || w.Address == m.Address) {
			faults = append(faults, Fault{
				Position: w.Position, Message: fmt.Sprintf("%s is no peer of this agent, and cannot be asked to witness", w.Address),
				Hint: "list it in the peers file, or remove it here",
			})
		}
	}
	if faults == nil {
		return nil
	}
	return &strictyaml.Error{Faults: faults}
}
