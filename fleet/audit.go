package fleet

import (
	"fmt"
	"slices"

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
		text := item.Text()
		address, err := envelope.ParseAddress(text)
		if err != nil && text != "" {
			item.Fault(err.Error(), "name a peer of this agent, such as agent://librarian")
		}
		if slices.ContainsFunc(a.Witnesses, func(w Witness) bool { return w.Address == address }) {
			item.Fault(fmt.Sprintf("the witness %s is listed twice", text), "")
		}
		a.Witnesses = append(a.Witnesses, Witness{Address: address, Position: item.Position()})
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
