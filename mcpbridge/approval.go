package mcpbridge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A client of the protocol is the host of a model. Whoever sits before it need not be one
// who may approve, and the host itself answers as it likes. So nothing that a client
// answers approves a call: it shows what waits and how an approver decides, and goes on
// waiting. What its person may do is to give the call up.

// approvalKey names the one request for input of a call.
const approvalKey = "approval"

// settle waits for the outcome of a call that a request has begun, or until it begins to
// wait for a person.
func (f *face) settle(ctx context.Context, req *mcp.CallToolRequest, fl *flight) *mcp.CallToolResult {
	select {
	case <-fl.done:
		return fl.outcome(ctx, req)
	case fl.approval = <-fl.waits:
		if ctx.Err() != nil { // nobody is there any more who could come back for it
			return fl.giveUp(ctx, req)
		}
		return f.waitForPerson(ctx, req, fl)
	case <-ctx.Done():
		return fl.giveUp(ctx, req)
	}
}

// giveUp ends a call and returns what came of it, which may still be an answer.
func (fl *flight) giveUp(ctx context.Context, req *mcp.CallToolRequest) *mcp.CallToolResult {
	fl.cancel()
	<-fl.done
	return fl.outcome(ctx, req)
}

// waitForPerson says that a call waits, in the way that the client knows. A client that
// cannot ask its person gets a handle instead: hosts end requests sooner than people
// decide.
func (f *face) waitForPerson(ctx context.Context, req *mcp.CallToolRequest, fl *flight) *mcp.CallToolResult {
	switch {
	case canAsk(req) && !inRounds(req):
		return f.elicit(ctx, req, fl)
	case canAsk(req):
		f.parked.park(fl, f.bridge.opts.MaxPending)
		return f.ask(req, fl)
	}
	return f.comeBack(ctx, req, fl)
}

// comeBack lets go of the request: what is left to its client is a handle.
func (f *face) comeBack(ctx context.Context, req *mcp.CallToolRequest, fl *flight) *mcp.CallToolResult {
	f.parked.park(fl, f.bridge.opts.MaxPending)
	h := f.handleText(handle{kind: parkedCall, begun: time.Now(), id: fl.id, tool: fl.tool.name})
	if out, ok := f.asTask(ctx, req, h, fl.message(), time.Until(fl.approval.Until)+keepOutcome); ok {
		return out
	}
	return pendingApproval(fl, h)
}

// canAsk reports whether the client of a request shows forms to its person.
func canAsk(req *mcp.CallToolRequest) bool {
	c := req.ClientCapabilities()
	// Before there were two modes, the empty capability meant forms.
	return c != nil && c.Elicitation != nil && (c.Elicitation.Form != nil || c.Elicitation.URL == nil)
}

// inRounds reports whether a request gets questions as its result and comes back with the
// answers. A session that began in the older way is asked in the older way.
func inRounds(req *mcp.CallToolRequest) bool {
	began := req.Session.InitializeParams()
	return req.ProtocolVersion() >= perRequest && (began == nil || began.ProtocolVersion >= perRequest)
}

// waiting tells a model what waits. It does not say how to decide: a model that runs
// commands in its user's name must not take that for the next step.
func (fl *flight) waiting() string {
	return fmt.Sprintf("The call of %s of %s waits for approval (%s) until %s.",
		fl.tool.Capability.Name, fl.tool.Address, fl.approval.ID, fl.approval.Until.UTC().Format(time.RFC3339))
}

// message tells a person what waits, and who decides. It has no part of the payload,
// which the approver is shown.
func (fl *flight) message() string {
	return fl.waiting() + fmt.Sprintf(" An approver of the agent decides with `agentd approvals approve %s`.", fl.approval.ID)
}

func (fl *flight) question() *mcp.ElicitParams {
	return &mcp.ElicitParams{
		Mode:            "form",
		Message:         fl.message() + " Accepting here approves nothing: the call goes on waiting. Declining gives it up.",
		RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`),
	}
}

// elicit shows a person what waits, by a request to the client, while the call waits.
func (f *face) elicit(ctx context.Context, req *mcp.CallToolRequest, fl *flight) *mcp.CallToolResult {
	asking, stop := context.WithCancel(ctx)
	type answer struct {
		action string
		err    error
	}
	answers := make(chan answer, 1)
	go func() {
		said, err := req.Session.Elicit(asking, fl.question())
		if err != nil {
			answers <- answer{err: err}
			return
		}
		answers <- answer{action: said.Action}
	}()
	// The question ends with the wait, whichever ends first.
	waiting := answers
	defer func() {
		stop()
		if waiting != nil {
			<-waiting
		}
	}()
	for {
		select {
		case <-fl.done:
			return fl.outcome(ctx, req)
		case said := <-waiting:
			waiting = nil
			switch {
			case said.action == "decline":
				return fl.giveUp(ctx, req)
			case said.err != nil && ctx.Err() == nil: // it cannot ask, whatever it has declared
				return f.comeBack(ctx, req, fl)
			}
		case <-ctx.Done():
			return fl.giveUp(ctx, req)
		}
	}
}

// ask returns the question to a person as the result of this round.
func (f *face) ask(req *mcp.CallToolRequest, fl *flight) *mcp.CallToolResult {
	return &mcp.CallToolResult{
		InputRequests: mcp.InputRequestMap{approvalKey: fl.question()},
		RequestState: f.stateText(state{
			Flight: fl.id, Request: requestDigest(req.Params.Name, req.Params.Arguments),
			Expires: fl.approval.Until.Add(keepOutcome).UnixMilli(),
		}),
	}
}

// backWith returns the state that a request comes back with, or nil for one that is new.
func (f *face) backWith(req *mcp.CallToolRequest) (*state, error) {
	if req.Params.RequestState == "" {
		return nil, nil
	}
	s, ok := f.parseState(req.Params.RequestState, requestDigest(req.Params.Name, req.Params.Arguments), time.Now())
	if !ok || s.Round != nil && s.Round.Asked == nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the request state is not one of this request, or has expired"}
	}
	return &s, nil
}

// resume serves a further round of a request: that of a call that was parked.
func (f *face) resume(ctx context.Context, req *mcp.CallToolRequest, s *state, err error) (*mcp.CallToolResult, error) {
	if err != nil {
		return nil, err
	}
	fl, ok := f.parked.find(s.Flight)
	if !ok {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the call of this request state is known no more"}
	}
	answer, answered := req.Params.InputResponses[approvalKey].(*mcp.ElicitResult)
	switch {
	case fl.over():
		return fl.outcome(ctx, req), nil
	case !answered:
		return f.ask(req, fl), nil
	case answer.Action == "decline":
		return fl.giveUp(ctx, req), nil
	}
	select {
	case <-fl.done:
		return fl.outcome(ctx, req), nil
	case <-ctx.Done():
		return fl.giveUp(ctx, req), nil
	}
}

// ApprovalPending is the code of a result that stands for a call that waits for a person.
const ApprovalPending = "ApprovalPending"

// pendingApproval is the result for a client that can only come back later. It is an
// error, because it is no answer that the tool's schema knows.
func pendingApproval(fl *flight, h string) *mcp.CallToolResult {
	out := errorResult(fmt.Sprintf("%s: %s Only a person may decide about it, an approver of the agent.\nDo not call %s again, which would ask for another approval. To get the result once it is decided, call %s with the handle %s",
		ApprovalPending, fl.waiting(), fl.tool.name, awaitTool, h), failedCall{Code: ApprovalPending, Message: fl.message()})
	annotate(out, fl.traceparent, nil)
	out.Meta[metaPending] = pendingInfo{Handle: h, ApprovalID: fl.approval.ID, Until: &fl.approval.Until}
	return out
}

// A pendingInfo names a call that goes on, for programs.
type pendingInfo struct {
	Handle     string     `json:"handle"`
	ApprovalID string     `json:"approvalId,omitempty"`
	Until      *time.Time `json:"until,omitempty"`
}

func compacted(raw json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}
