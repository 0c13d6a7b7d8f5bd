package daemon

import (
	"encoding/hex"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/internal/jcs"
	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/rpc"
)

// appendCallBody appends the body of a record of kind rpc_call. Each end of a call has one
// of its own. Every call leaves two, so the canonical form (RFC 8785) is written as such:
// members are in the order of their names.
func appendCallBody(b []byte, r *rpc.CallRecord, costs *costTexts) []byte {
	o := object{b: append(b, '{')}
	// attempts, at the caller, counts the requests, and is 0 for a call that was refused
	// before the first. At the callee it is which of them this one is.
	o.integer("attempts", int64(r.Attempts))
	o.text("capabilityName", r.Capability)
	if r.Code != 0 {
		o.text("code", r.Code.String())
	}
	o.text("correlationId", r.CorrelationID) // the same at both ends
	// cost_estimate is what the contract declares, if the skill ran. The name is the
	// reference system's.
	if len(r.Cost) > 0 {
		if cost, err := costs.of(r.Capability, r.Cost); err == nil {
			o.raw("cost_estimate", cost)
		}
	}
	o.optional("detectedBy", string(r.DetectedBy))
	// executionTimeMs is how long the skill ran, if it did.
	if r.ExecutionTime.Microseconds() != 0 {
		o.milliseconds("executionTimeMs", r.ExecutionTime)
	}
	o.optional("failure", r.Failure) // the code of a built-in action, at the callee
	o.milliseconds("latencyMs", r.Latency)
	o.text("mode", string(r.Mode))
	o.optional("origin", r.Origin) // who asked the caller for the call, such as MCP:claude-code
	// payloadSha256 is the SHA-256 of the payload's bytes as the message carried them, so
	// that the records of both ends and of an approval can be compared. It is absent from a
	// call that was refused before it was sent, or let in.
	if r.Payload != (envelope.PayloadDigest{}) {
		o.name("payloadSha256")
		o.b = append(hex.AppendEncode(append(o.b, '"'), r.Payload[:]), '"')
	}
	o.text("peerId", string(r.Peer))
	o.flag("replayed", r.Replayed) // the answer is that to an earlier request with the same key
	if len(r.Retried) > 0 {
		o.codes("retried", r.Retried)
	}
	o.text("role", string(r.Role))
	o.optional("sessionId", r.SessionID)
	o.integer("startMs", r.Start.UnixMilli()) // by this end's clock
	o.text("status", string(r.Status))
	o.optional("traceId", r.TraceID)
	// unproven is set where the drift gate let the call go on although it had proven
	// nothing, and unprovenReason says why.
	o.flag("unproven", r.Unproven != "")
	o.optional("unprovenReason", truncate.String(r.Unproven, maxRecordedReason))
	// unrecorded counts the malformed messages since the last record of one.
	if r.Unrecorded != 0 {
		o.integer("unrecorded", r.Unrecorded)
	}
	return append(o.b, '}')
}

// costTexts are the canonical forms of what capabilities declare to cost, by their names: the
// same for call after call.
type costTexts map[string]costText

type costText struct {
	cost map[string]float64
	text []byte
}

// maxCostTexts bounds them. A caller may have many peers.
const maxCostTexts = 256

func (c *costTexts) of(capability string, cost map[string]float64) ([]byte, error) {
	if known, ok := (*c)[capability]; ok && maps.Equal(known.cost, cost) {
		return known.text, nil
	}
	text, err := jcs.Marshal(cost)
	if err != nil {
		return nil, err
	}
	if *c == nil || len(*c) >= maxCostTexts {
		*c = costTexts{}
	}
	(*c)[strings.Clone(capability)] = costText{maps.Clone(cost), text}
	return text, nil
}

// An object is a canonical JSON object that is being written, member by member.
type object struct {
	b       []byte
	further bool // there is a member already
}

// name begins a member. Names need no escapes.
func (o *object) name(name string) {
	if o.further {
		o.b = append(o.b, ',')
	}
	o.further = true
	o.b = append(append(append(o.b, '"'), name...), `":`...)
}

func (o *object) raw(name string, value []byte) {
	o.name(name)
	o.b = append(o.b, value...)
}

func (o *object) text(name, value string) {
	o.name(name)
	o.b = ijson.AppendQuoted(o.b, value)
}

// optional is text that is left out where it is empty.
func (o *object) optional(name, value string) {
	if value != "" {
		o.text(name, value)
	}
}

func (o *object) integer(name string, value int64) {
	o.name(name)
	o.b = strconv.AppendInt(o.b, value, 10)
}

// flag is left out where it is false.
func (o *object) flag(name string, value bool) {
	if value {
		o.raw(name, []byte("true"))
	}
}

// milliseconds has the precision of a microsecond.
func (o *object) milliseconds(name string, d time.Duration) {
	o.name(name)
	us := d.Microseconds()
	if us < 0 {
		o.b, us = append(o.b, '-'), -us
	}
	o.b = strconv.AppendInt(o.b, us/1000, 10)
	if us %= 1000; us == 0 {
		return
	}
	o.b = append(o.b, '.')
	for unit := int64(100); us > 0; us, unit = us%unit, unit/10 { // no zeros at the end
		o.b = append(o.b, "0123456789"[us/unit])
	}
}

func (o *object) codes(name string, codes []rpc.Code) {
	o.name(name)
	o.b = append(o.b, '[')
	for i, c := range codes {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b = ijson.AppendQuoted(o.b, c.String())
	}
	o.b = append(o.b, ']')
}
