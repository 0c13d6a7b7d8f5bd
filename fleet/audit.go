package fleet

import (
	"fmt"
	"slices"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/strictyaml"
)

const (
	// DefaultCaptureBytes bounds a captured payload when the file does not say.
	DefaultCaptureBytes = 16 << 10
	// maxCaptureBytes keeps a record below what the audit log takes.
	maxCaptureBytes = 256 << 10
)

// Audit says what becomes of a member's audit log.
type Audit struct {
	// Witnesses are the peers that keep the newest checkpoint of the log, and
	// co-sign it. None by default.
	Witnesses []Witness
	// Capture names the capabilities, this member's own or those that it calls,
	// whose payloads are kept in the record when they break their schema. None
	// by default: no record holds a payload value.
	Capture []string
	// CaptureBytes bounds one captured payload; of a larger one only the size is
	// kept. Default 16 KiB.
	CaptureBytes int
	// FailOpen lets calls go on of which no record can be written; the loss is
	// counted and recorded later. By default they are refused. Schema violations
	// are always recorded before their call ends.
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

// decodeAudit reads the block audit. The reference runtime has keys of its own
// there, about its exporters, which are passed over.
func decodeAudit(v strictyaml.Value) Audit {
	a := Audit{CaptureBytes: DefaultCaptureBytes}
	if !v.Present() {
		return a
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
	o.PassOver("export", "exporters", "backpressure", "retention")
	return a
}

// checkWitnesses makes sure that each witness is a peer: another agent cannot be
// asked. The error is a [*strictyaml.Error].
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
