package mcpbridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/schema"
)

// A capability may ask the client of a call: for what its person says, its model, its folders.
// Its answer is then what it asks for, and the call is made again with the client's answers.
// Each of these calls is one of its own, with permissions, limits and records. What is asked
// are the words of a peer, and the client is told whose.

const (
	// maxRounds is how often one request may ask.
	maxRounds = 8
	// keepQuestion is how long a client may take to answer.
	keepQuestion = time.Hour
)

// A round is what a client carries, signed, from a question to the answers.
type round struct {
	// Number counts the rounds, from 1.
	Number int `json:"n"`
	// Asked is what the client was asked, in the skill's words: answers are held against it.
	Asked *capability.InputRequired `json:"q"`
	// Call is the flight that asked: however often its question is asked, it is one question.
	Call string `json:"x"`
}

// canAnswer returns what the client of a request can be asked for of what a tool may ask.
//
//nolint:staticcheck // models and folders are deprecated, and in use
func (t *tool) canAnswer(req *mcp.CallToolRequest) []capability.Ask {
	c := req.ClientCapabilities()
	var kinds []capability.Ask
	for _, kind := range t.Capability.Asks {
		switch {
		case c == nil:
		case kind == capability.AskElicitation && canAsk(req),
			kind == capability.AskSampling && c.Sampling != nil,
			kind == capability.AskRoots && c.RootsV2 != nil:
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// withInput adds to the payload of a call what its client can be asked for, and what it has
// answered.
func withInput(req *mcp.CallToolRequest, t *tool, payload json.RawMessage, in capability.ClientInput) (json.RawMessage, error) {
	if len(t.Capability.Asks) == 0 {
		return payload, nil
	}
	in.CanAsk = t.canAnswer(req)
	if len(bytes.TrimSpace(payload)) == 0 {
		payload = json.RawMessage("{}")
	}
	return capability.WithClientInput(payload, in)
}

// question is the result of a call that asks its client. The call has ended; the answers begin
// another.
func (f *face) question(ctx context.Context, req *mcp.CallToolRequest, fl *flight, asked *capability.InputRequired) *mcp.CallToolResult {
	t, n := fl.tool, fl.round+1
	refuse := func(code rpc.Code, format string, args ...any) *mcp.CallToolResult {
		return failure(t, rpc.NewError(code, nil, format, args...))
	}
	if req.Params.Name != t.name { // it was come back for by a handle
		return refuse(rpc.CodeInputRequired, "the call asks for input, which only a call of %s itself can answer", t.name)
	}
	if n > maxRounds {
		return refuse(rpc.CodeInputRequired, "%s asks for input again and again: it has %d times", t.what(), maxRounds)
	}
	requests, err := requestsOf(ctx, t, asked)
	if err != nil {
		return refuse(rpc.CodeBadSkillOutput, "%s asks for input in a way that no client understands: %s", t.what(), truncate.String(err.Error(), 300))
	}
	given := req.Params.InputResponses
	if !inRounds(req) {
		if given, err = f.askSession(ctx, req, requests); err != nil {
			return refuse(rpc.CodeInputRequired, "%s asks for input, and the client has not given it: %s", t.what(), truncate.String(err.Error(), 300))
		}
	} else if req.Params.RequestState != "" || n > 1 || !allAnswered(ctx, asked, given) {
		// Answers that came with a new request, before anything was asked, count if they are
		// the right ones; those to an earlier question do not.
		return f.inRound(req, requests, round{Number: n, Asked: asked, Call: fl.id})
	}
	r := fl.request
	if r.Traceparent = fl.traceparent; r.IdempotencyKey != "" {
		r.IdempotencyKey = fmt.Sprintf("%s/%d", r.IdempotencyKey, n) // another payload takes another key
	}
	return f.next(ctx, req, t, r, n, asked, given)
}

// next makes the call of a request again, with the answers of its client.
func (f *face) next(ctx context.Context, req *mcp.CallToolRequest, t *tool, r rpc.Request, n int, asked *capability.InputRequired, given mcp.InputResponseMap) *mcp.CallToolResult {
	in := capability.ClientInput{RequestState: asked.RequestState, InputResponses: map[string]json.RawMessage{}}
	all := allAnswered(ctx, asked, given)
	for key := range asked.InputRequests {
		text, err := json.Marshal(given[key])
		if err != nil || !all {
			return failure(t, rpc.NewError(rpc.CodeInputRequired, nil, "the client's answer to %q is not what was asked for", key))
		}
		in.InputResponses[key] = text
	}
	return f.callRound(ctx, req, t, r, n, in)
}

// inRound returns a question as the result of a request.
func (f *face) inRound(req *mcp.CallToolRequest, requests mcp.InputRequestMap, r round) *mcp.CallToolResult {
	return &mcp.CallToolResult{
		InputRequests: requests,
		RequestState: f.stateText(state{
			Round: &r, Request: requestDigest(req.Params.Name, req.Params.Arguments), Expires: time.Now().Add(keepQuestion).UnixMilli(),
		}),
	}
}

// answerRound serves the request that comes back with answers: it asks again for those that
// are missing, and else makes the call. However often a question is answered, the skill runs
// for it once, where its agent remembers requests: their key is the call that asked. States are
// no keys, because a question that is asked again has another one, and both can come back.
func (f *face) answerRound(ctx context.Context, req *mcp.CallToolRequest, t *tool, r rpc.Request, back *round) *mcp.CallToolResult {
	if !allAnswered(ctx, back.Asked, req.Params.InputResponses) {
		requests, err := requestsOf(ctx, t, back.Asked)
		if err != nil { // never: it was asked before
			return failure(t, rpc.NewError(rpc.CodeInternal, err, "internal error"))
		}
		return f.inRound(req, requests, *back)
	}
	r.IdempotencyKey = "input/" + back.Call
	return f.next(ctx, req, t, r, back.Number, back.Asked, req.Params.InputResponses)
}

// askSession asks the client of a session, one question after the other.
func (f *face) askSession(ctx context.Context, req *mcp.CallToolRequest, requests mcp.InputRequestMap) (mcp.InputResponseMap, error) {
	if why := f.slots.take(req.Session); why != "" { // the call that asks has given back its own
		return nil, errors.New(why)
	}
	defer f.slots.free(req.Session)
	asking, stop := context.WithTimeout(ctx, keepQuestion)
	defer stop()
	// Who is asked must not keep the agent from stopping.
	defer context.AfterFunc(f.bridge.waiting, stop)() //nolint:contextcheck // the bridge's end ends it, too
	given := mcp.InputResponseMap{}
	for _, key := range slices.Sorted(maps.Keys(requests)) {
		var err error
		if given[key], err = f.askClient(asking, req.Session, requests[key]); err != nil {
			return nil, err
		}
	}
	return given, nil
}

// answered keeps a nil answer from being one.
func answered[R mcp.InputResponse](r R, err error) (mcp.InputResponse, error) {
	if err != nil {
		return nil, err
	}
	return r, nil
}

// requestsOf turns what a skill asks into requests of the protocol. A person reads whose words
// they are, and a model is told; agentd's own questions never begin like that.
//
//nolint:staticcheck // models and folders are deprecated, and in use
func requestsOf(ctx context.Context, t *tool, asked *capability.InputRequired) (mcp.InputRequestMap, error) {
	if size, err := json.Marshal(asked); err != nil || len(size) > capability.MaxInputBytes {
		return nil, fmt.Errorf("it has more than %d bytes", capability.MaxInputBytes)
	}
	whose := fmt.Sprintf("%s (%s) asks: ", t.Address, t.Capability.Name)
	requests := mcp.InputRequestMap{}
	for key, r := range asked.InputRequests {
		switch r.Ask() {
		case capability.AskElicitation:
			form, err := formOf(r)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
			if _, err := form.compile(ctx); err != nil {
				return nil, fmt.Errorf("%s: its requestedSchema: %w", key, err)
			}
			requests[key] = &mcp.ElicitParams{Mode: "form", Message: whose + form.Message, RequestedSchema: form.RequestedSchema}
		case capability.AskSampling:
			var p mcp.CreateMessageParams
			if err := json.Unmarshal(r.Params, &p); err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
			p.SystemPrompt = strings.TrimSpace("What follows comes from the agent " + string(t.Address) + ".\n\n" + p.SystemPrompt)
			requests[key] = &p
		case capability.AskRoots:
			requests[key] = &mcp.ListRootsParams{}
		default:
			return nil, fmt.Errorf("%s: no such method", key)
		}
	}
	return requests, nil
}

// A form is what a person is asked to fill in.
type form struct {
	Message         string          `json:"message"`
	RequestedSchema json.RawMessage `json:"requestedSchema"`
}

func formOf(r capability.InputRequest) (f form, err error) {
	err = json.Unmarshal(r.Params, &f)
	return f, err
}

// compile compiles what a form asks for, which a peer wrote.
func (f form) compile(ctx context.Context) (*schema.Schema, error) {
	return schema.CompileWithin(ctx, f.RequestedSchema, schema.CompileOptions{Profile: schema.ProfileFull}, schema.CompileLimits{})
}

// allAnswered reports whether a client has answered all that it was asked, each in its kind, and
// forms with what they ask for. Other answers beside these are nobody's.
//
//nolint:staticcheck // models and folders are deprecated, and in use
func allAnswered(ctx context.Context, asked *capability.InputRequired, given mcp.InputResponseMap) bool {
	for key, r := range asked.InputRequests {
		ok := false
		switch a := given[key].(type) {
		case *mcp.ElicitResult:
			ok = r.Ask() == capability.AskElicitation && fits(ctx, r, a)
		case *mcp.CreateMessageResult, *mcp.CreateMessageWithToolsResult:
			ok = r.Ask() == capability.AskSampling
		case *mcp.ListRootsResult:
			ok = r.Ask() == capability.AskRoots
		}
		if !ok {
			return false
		}
	}
	return true
}

// fits reports whether a form is filled in as its schema says, or is declined.
func fits(ctx context.Context, r capability.InputRequest, a *mcp.ElicitResult) bool {
	if a.Action != "accept" {
		return a.Action == "decline" || a.Action == "cancel"
	}
	form, err := formOf(r)
	if err != nil {
		return false
	}
	s, err := form.compile(ctx)
	if err != nil {
		return false
	}
	content := a.Content
	if content == nil {
		content = map[string]any{}
	}
	text, err := json.Marshal(content)
	return err == nil && exact(content) && s.Check(text).Verdict == schema.Valid
}

// exact reports whether all numbers are those that the client has sent: the library reads
// them as floats.
func exact(content map[string]any) bool {
	for _, value := range content {
		if n, ok := value.(float64); ok && math.Abs(n) >= 1<<53 {
			return false
		}
	}
	return true
}

// cannotAsk is the outcome of a call that asks for what its client has not declared. The
// revisions that declare it with each request have an error of the protocol for that.
func (f *face) cannotAsk(ctx context.Context, req *mcp.CallToolRequest, t *tool, e *rpc.Error) *mcp.CallToolResult {
	var details struct {
		Asks []string `json:"asks"`
	}
	instead, ok := ctx.Value(substituteKey{}).(*substitute)
	if ok && instead != nil && req.ProtocolVersion() >= perRequest && json.Unmarshal(e.Details, &details) == nil && len(details.Asks) > 0 {
		required := map[string]any{}
		for _, kind := range details.Asks {
			required[kind] = struct{}{}
		}
		instead.err = missingCapability(required)
	}
	return failure(t, e)
}
