package approval

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/jcs"
)

// MaxStatementBytes bounds a statement: its longest part is a reason of 2 KiB, whose
// characters may all be escaped.
const MaxStatementBytes = 16 << 10

// MaxReasonBytes bounds a reason.
const MaxReasonBytes = 2048

// A Decision is what a person decides about a waiting call.
type Decision string

// The decisions.
const (
	Approve Decision = "approve"
	Deny    Decision = "deny"
)

// A Statement is what a person signs. Everything in it but Decision and Reason comes from
// the agent that asks, and must come back unchanged.
type Statement struct {
	// ApprovalID and Nonce are the wait's. The nonce is new for every wait, and known only
	// once it has begun.
	ApprovalID string `json:"approvalId"`
	Nonce      string `json:"nonce"`
	// AskedBy is the agent that asks: the caller, or the callee.
	AskedBy envelope.Address `json:"askedBy"`
	// Caller, Callee, Capability, CorrelationID and Tenant are the call's. Tenant is "" for a
	// call that names none.
	Caller        envelope.Address `json:"caller"`
	Callee        envelope.Address `json:"callee"`
	Capability    string           `json:"capability"`
	CorrelationID string           `json:"correlationId"`
	Tenant        string           `json:"tenant"`
	// PayloadSHA256 is the call's [envelope.PayloadDigest], in hex.
	PayloadSHA256 string `json:"payloadSha256"`
	// Expires is when the wait ends, and with it what a signature is good for. It has no
	// more than milliseconds.
	Expires time.Time `json:"expires"`
	// Decision is the person's, and Reason the person's reason for it, or "".
	Decision Decision `json:"decision"`
	Reason   string   `json:"reason,omitempty"`
}

// Encode returns the canonical form (RFC 8785), without a newline: what is signed.
func (s Statement) Encode() ([]byte, error) {
	s.Expires = s.Expires.UTC().Truncate(time.Millisecond)
	text, err := jcs.Marshal(s)
	if err != nil {
		return nil, refuse(MalformedStatement, err, "the statement has no canonical form")
	}
	return text, nil
}

// Parse reads a statement. It accepts the canonical form only, so that no two readers of
// the signed bytes can see two statements in them.
func Parse(text []byte) (Statement, error) {
	var s Statement
	if len(text) > MaxStatementBytes {
		return s, refuse(MalformedStatement, nil, "the statement has more than %d bytes", MaxStatementBytes)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil {
		return Statement{}, refuse(MalformedStatement, err, "the statement cannot be read")
	}
	if s.Decision != Approve && s.Decision != Deny {
		return Statement{}, refuse(MalformedStatement, nil, "the statement decides %.64q, which is neither approve nor deny", s.Decision)
	}
	if len(s.Reason) > MaxReasonBytes {
		return Statement{}, refuse(MalformedStatement, nil, "the reason has more than %d bytes", MaxReasonBytes)
	}
	if again, err := s.Encode(); err != nil || !bytes.Equal(again, text) {
		return Statement{}, refuse(MalformedStatement, err, "the statement is not in its canonical form, as `agentd approvals show --statement` writes it")
	}
	return s, nil
}

// Matches returns nil if s is about the wait that want describes, whatever s decides, and
// otherwise an error that names the first field in which they differ.
func (s Statement) Matches(want Statement) error {
	for _, field := range []struct{ name, got, want string }{
		{"approvalId", s.ApprovalID, want.ApprovalID},
		{"askedBy", string(s.AskedBy), string(want.AskedBy)},
		{"caller", string(s.Caller), string(want.Caller)},
		{"callee", string(s.Callee), string(want.Callee)},
		{"capability", s.Capability, want.Capability},
		{"correlationId", s.CorrelationID, want.CorrelationID},
		{"tenant", s.Tenant, want.Tenant},
		{"payloadSha256", s.PayloadSHA256, want.PayloadSHA256},
		{"nonce", s.Nonce, want.Nonce},
	} {
		if field.got != field.want {
			return refuse(OtherCall, nil, "the statement is about another call: its %s is %.128q, and that of the waiting call %.128q", field.name, field.got, field.want)
		}
	}
	if !s.Expires.Equal(want.Expires.Truncate(time.Millisecond)) {
		return refuse(OtherCall, nil, "the statement expires at %s, and the wait ends at %s", s.Expires.Format(time.RFC3339Nano), want.Expires.UTC().Format(time.RFC3339Nano))
	}
	return nil
}
