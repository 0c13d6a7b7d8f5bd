package callee

import (
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/transport"
)

// receiveControl takes the events of callers that cancel their calls. Every replica
// gets every event; the one that runs the call acts on it.
func (in *Inbox) receiveControl(m transport.Message) {
	e, err := envelope.Decode(m.Data)
	if err != nil {
		in.ignore(m.Topic, err.Error())
		return
	}
	what, _ := e.Headers.Get(envelope.HeaderControl)
	if e.Kind != envelope.Event || what != envelope.ControlCancel {
		in.ignore(m.Topic, "not a cancellation event")
		return
	}
	if event := in.newCall(nil, e, len(m.Data)); !event.verifySender() {
		return
	}
	// By message id, not correlation id: a late cancellation of one attempt must
	// not end the next.
	c := in.requests.find(e.CausedBy)
	// Only the caller may cancel its call.
	if c != nil && c.request.From == e.From && c.request.CorrelationID == e.CorrelationID {
		c.ctx.end(ErrCallerCancelled)
	}
}
