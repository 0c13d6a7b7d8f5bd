package control

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/agentd/agentd/auditchain"
)

// maxAuditRequestBytes bounds the body of a request to change the audit log. It
// leaves room for [auditchain.MaxColumnBytes] in each column of a filter.
const maxAuditRequestBytes = 64 << 10

// An AuditKeeper changes an audit log in ways other than appending. Each change
// is a record of the log itself. An [auditchain.Log] is an AuditKeeper, and so is
// the [Client] of the agent that has the log open.
type AuditKeeper interface {
	// Redact erases the content of the records that a filter chooses.
	Redact(ctx context.Context, filter auditchain.Filter, reason string) (auditchain.Erasure, error)
	// Prune removes the records written before a time.
	Prune(ctx context.Context, before time.Time, reason string) (auditchain.Erasure, error)
	// RotateKey makes a new signing key and returns its verifier key.
	RotateKey(ctx context.Context) (verifier string, err error)
}

var (
	_ AuditKeeper = (*auditchain.Log)(nil)
	_ AuditKeeper = (*Client)(nil)
)

// redactRequest is the body of POST /v1/audit/redact.
type redactRequest struct {
	Match  match  `json:"match"`
	Reason string `json:"reason"`
}

// match is an [auditchain.Filter] on the wire. An absent member is no condition.
type match struct {
	Kinds       []auditchain.Kind `json:"kinds,omitempty"`
	Tenant      string            `json:"tenant,omitempty"`
	Peer        string            `json:"peer,omitempty"`
	Capability  string            `json:"capability,omitempty"`
	Side        auditchain.Side   `json:"side,omitempty"`
	Correlation string            `json:"correlation,omitempty"`
	Session     string            `json:"session,omitempty"`
	Since       time.Time         `json:"since,omitzero"`
	Until       time.Time         `json:"until,omitzero"`
	Text        string            `json:"text,omitempty"`
}

// matchOf leaves out After, Limit and Order, which have no meaning for a change.
func matchOf(f auditchain.Filter) match {
	return match{
		Kinds: f.Kinds, Tenant: f.Tenant, Peer: f.Peer, Capability: f.Capability, Side: f.Side,
		Correlation: f.Correlation, Session: f.Session, Since: f.Since, Until: f.Until, Text: f.Text,
	}
}

func (m match) filter() auditchain.Filter {
	return auditchain.Filter{
		Kinds: m.Kinds, Tenant: m.Tenant, Peer: m.Peer, Capability: m.Capability, Side: m.Side,
		Correlation: m.Correlation, Session: m.Session, Since: m.Since, Until: m.Until, Text: m.Text,
	}
}

// pruneRequest is the body of POST /v1/audit/prune.
type pruneRequest struct {
	Before time.Time `json:"before"`
	Reason string    `json:"reason"`
}

// erasure is the response to a redaction or pruning, an [auditchain.Erasure].
type erasure struct {
	Records []int64 `json:"records"`
	Count   int64   `json:"count"`
}

// erasureOf writes no records as an empty list: a client may take its length.
func erasureOf(e auditchain.Erasure) erasure {
	if e.Records == nil {
		e.Records = []int64{}
	}
	return erasure(e)
}

// rotation is the response to POST /v1/audit/rotate-key.
type rotation struct {
	VerifierKey string `json:"verifierKey"`
}

func (a Agent) redactAudit(w http.ResponseWriter, r *http.Request) {
	var request redactRequest
	changeAudit(a.Audit, w, r, &request, func(ctx context.Context) (any, error) {
		done, err := a.Audit.Redact(ctx, request.Match.filter(), request.Reason)
		return erasureOf(done), err
	})
}

func (a Agent) pruneAudit(w http.ResponseWriter, r *http.Request) {
	var request pruneRequest
	changeAudit(a.Audit, w, r, &request, func(ctx context.Context) (any, error) {
		done, err := a.Audit.Prune(ctx, request.Before, request.Reason)
		return erasureOf(done), err
	})
}

func (a Agent) rotateAuditKey(w http.ResponseWriter, r *http.Request) {
	changeAudit(a.Audit, w, r, &struct{}{}, func(ctx context.Context) (any, error) {
		key, err := a.Audit.RotateKey(ctx)
		return rotation{VerifierKey: key}, err
	})
}

// changeAudit decodes a request, performs the change and responds. It detaches
// the change from the client: half an erasure would leave a log whose records
// contradict each other, so one that has begun is completed.
func changeAudit(keeper AuditKeeper, w http.ResponseWriter, r *http.Request, request any, change func(context.Context) (any, error)) {
	if keeper == nil {
		writeFault(w, http.StatusNotFound, auditchain.CodeNotFound.String(), "this agent has no audit log")
		return
	}
	if err := decodeStrict(http.MaxBytesReader(w, r.Body, maxAuditRequestBytes), request); err != nil {
		refuseBody(w, auditchain.CodeInvalid.String(), "the request was not understood, and nothing was changed", err)
		return
	}
	answer, err := change(context.WithoutCancel(r.Context()))
	if err != nil {
		status, code := http.StatusInternalServerError, auditchain.CodeOf(err)
		switch code {
		// An error from below the log, such as a full disk.
		case 0:
			code = auditchain.CodeIO
		case auditchain.CodeInvalid:
			status = http.StatusBadRequest
		case auditchain.CodeClosed:
			status = http.StatusServiceUnavailable
		}
		writeFault(w, status, code.String(), err.Error())
		return
	}
	writeJSON(w, http.StatusOK, answer)
}

// Redact has the agent redact its own log, see [auditchain.Log.Redact]. The
// filter's After, Limit and Order are not sent. Errors are [*NotRunningError],
// [*RefusedError] with the text of an [auditchain.Code], or the connection's;
// after the latter, the change may or may not have been made.
func (c *Client) Redact(ctx context.Context, filter auditchain.Filter, reason string) (auditchain.Erasure, error) {
	var done erasure
	err := c.post(ctx, "/v1/audit/redact", redactRequest{Match: matchOf(filter), Reason: reason}, &done)
	return auditchain.Erasure(done), err
}

// Prune has the agent prune its own log, see [auditchain.Log.Prune]. Errors
// are those of [Client.Redact].
func (c *Client) Prune(ctx context.Context, before time.Time, reason string) (auditchain.Erasure, error) {
	var done erasure
	err := c.post(ctx, "/v1/audit/prune", pruneRequest{Before: before, Reason: reason}, &done)
	return auditchain.Erasure(done), err
}

// RotateKey has the agent change the key that its log is signed with, see
// [auditchain.Log.RotateKey]. Errors are those of [Client.Redact].
func (c *Client) RotateKey(ctx context.Context) (verifier string, err error) {
	var done rotation
	err = c.post(ctx, "/v1/audit/rotate-key", struct{}{}, &done)
	return done.VerifierKey, err
}

// post sends one JSON value and decodes the response into another.
func (c *Client) post(ctx context.Context, path string, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("control: %w", err)
	}
	data, err := c.do(ctx, http.MethodPost, path, body)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return fmt.Errorf("control: %w", err)
	}
	return nil
}
