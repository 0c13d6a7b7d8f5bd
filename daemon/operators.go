package daemon

import (
	"context"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon/control"
)

// operators says who may use the control socket.
func (d *Daemon) operators() control.Operators {
	return control.Operators{Alone: d.cfg.OwnsProcess, CallOf: d.descendants.CallOf, Refused: d.recordIntruder, Logger: d.log}
}

// An intruderBody is the body of the lifecycle record about a process that used the
// control socket and is no operator's.
type intruderBody struct {
	Event         string           `json:"event"` // always "operator-refused"
	Reason        string           `json:"reason"`
	Request       string           `json:"request"`
	CorrelationID string           `json:"correlationId,omitempty"` // of the call whose skill it is
	Actor         auditchain.Actor `json:"actor"`
	Unrecorded    int64            `json:"unrecorded,omitempty"`
}

// recordIntruder records that the control socket has refused a process. The log and
// status say so when records cannot be written.
func (d *Daemon) recordIntruder(ctx context.Context, i control.Intruder) {
	_ = d.audit.append(ctx, auditchain.KindLifecycle, "", intruderBody{
		Event: "operator-refused", Reason: i.Reason, Request: i.Request, CorrelationID: i.CorrelationID, Actor: i.Actor, Unrecorded: i.Unrecorded,
	})
}
