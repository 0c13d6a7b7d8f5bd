package envelope_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/alloctest"
)

func TestEncodeRefuses(t *testing.T) {
	for name, change := range map[string]func(*envelope.Envelope){
		"correlationId": func(e *envelope.Envelope) { e.CorrelationID = "" },
		"causedBy":      func(e *envelope.Envelope) { e.CausedBy = "\xff" },
		"tenantId":      func(e *envelope.Envelope) { e.TenantID = "\xff" },
		"kind":          func(e *envelope.Envelope) { e.Kind = "" },
		"messageId":     func(e *envelope.Envelope) { e.MessageID = "" },
		"from":          func(e *envelope.Envelope) { e.From = "agent://A" },
		"to":            func(e *envelope.Envelope) { e.To = "b" },
		"capability":    func(e *envelope.Envelope) { e.Capability = "\xff" },
		"replyTo":       func(e *envelope.Envelope) { e.ReplyTo = "x" },
		"deadline":      func(e *envelope.Envelope) { e.Deadline = -1 },
		"headers":       func(e *envelope.Envelope) { e.Headers = envelope.Headers{{Key: "\xff"}} },
		"auth":          func(e *envelope.Envelope) { e.Auth = envelope.Auth{Kind: "magic"} },
		"payload":       func(e *envelope.Envelope) { e.Payload = json.RawMessage(`{"a":}`) },
	} {
		e := full()
		change(e)
		_, err := e.Encode()
		if typed, ok := errors.AsType[*envelope.Error](err); !ok || len(typed.Faults) != 1 || typed.Faults[0].Path != name {
			t.Errorf("%s: error %v does not name it alone", name, err)
		}
		if name == "payload" {
			continue // EncodeChecked does not read it
		}
		if _, err := e.EncodeChecked(); err == nil {
			t.Errorf("%s: encoded for a payload that has been validated", name)
		}
		if name == "auth" {
			continue // EncodeSigned replaces it
		}
		if _, err := e.EncodeSigned(signer{auth: envelope.Auth{Kind: envelope.AuthInternal}}); err == nil {
			t.Errorf("%s: encoded and signed", name)
		}
	}
}

// What stands around a payload takes no second copy of it.
func TestWrapPayload(t *testing.T) {
	e := full()
	e.Payload = json.RawMessage(`[1,2]`)
	e.WrapPayload(`{"data":`, `}`)
	data, err := e.EncodeChecked()
	if err != nil {
		t.Fatal(err)
	}
	back, err := envelope.Decode(data)
	if err != nil || string(back.Payload) != `{"data":[1,2]}` {
		t.Errorf("decoded %v, %v", back, err)
	}
	if form := e.SigningForm(); !strings.Contains(string(form), `"payload":{"data":[1,2]}}`) {
		t.Errorf("the signing form is %s", form)
	}
	// What is signed is what is sent: the wrapping is part of both.
	var form []byte
	var to envelope.Address
	signed, err := e.EncodeSigned(signer{auth: envelope.Auth{Kind: envelope.AuthInternal}, to: &to, form: &form})
	if err != nil || !bytes.Contains(form, []byte(`{"data":[1,2]}`)) || !bytes.HasPrefix(signed, form[:len(form)-1]) {
		t.Errorf("%v: signed\n%s\nsent\n%s", err, form, signed)
	}
}

// A signer returns what it was made with, and keeps what it was asked.
type signer struct {
	auth envelope.Auth
	err  error
	to   *envelope.Address
	form *[]byte
}

func (s signer) Seal(form, to []byte) ([]byte, error) {
	if s.to != nil {
		*s.to, *s.form = envelope.Address(to), bytes.Clone(form)
	}
	if s.err != nil || s.auth.Kind == "" {
		return form, s.err
	}
	return envelope.WithAuth(form, &s.auth)
}

// What is signed is the signing form, and what is sent is the same bytes with the
// proof behind them, in place of the proof that the message had before.
func TestEncodeSigned(t *testing.T) {
	var to envelope.Address
	var form []byte
	proof := envelope.Auth{Kind: envelope.AuthHMAC, KeyID: "k2", Signature: strings.Repeat("cd", 32)}
	e := full()
	data, err := e.EncodeSigned(signer{auth: proof, to: &to, form: &form})
	if err != nil {
		t.Fatal(err)
	}
	if want := full(); to != want.To || !bytes.Equal(form, want.SigningForm()) {
		t.Errorf("signed for %s:\n%s", to, form)
	}
	want := full()
	want.Auth = proof
	if encoded, err := want.Encode(); err != nil || !bytes.Equal(data, encoded) {
		t.Errorf("got\n%s\nwant\n%s", data, encoded)
	}
}

func TestEncodeSignedWithoutAProof(t *testing.T) {
	data, err := full().EncodeSigned(signer{})
	if err != nil || !bytes.Equal(data, full().SigningForm()) {
		t.Errorf("%v\n%s", err, data)
	}
}

// A message that cannot be proven is not sent as a claim.
func TestEncodeSignedRefuses(t *testing.T) {
	expired := errors.New("the key has expired")
	if data, err := full().EncodeSigned(signer{auth: envelope.Auth{Kind: envelope.AuthInternal}, err: expired}); !errors.Is(err, expired) || data != nil {
		t.Errorf("a signer that fails: %s, %v", data, err)
	}
	for name, auth := range map[string]envelope.Auth{
		"hmac without a key id":    {Kind: envelope.AuthHMAC, Signature: strings.Repeat("00", 32)},
		"hmac without a signature": {Kind: envelope.AuthHMAC, KeyID: "k"},
		"oidc without a token":     {Kind: envelope.AuthOIDC, KeyID: "k"},
		"unknown kind":             {Kind: "magic"},
	} {
		if data, err := full().EncodeSigned(signer{auth: auth}); err == nil || !strings.HasPrefix(err.Error(), "invalid agent-rpc envelope: auth: ") {
			t.Errorf("%s: %s, %v", name, data, err)
		}
		e := full()
		e.Auth = auth
		if data, err := e.Encode(); err == nil {
			t.Errorf("%s is encoded: %s", name, data)
		}
	}
}

// A message has the fields of its kind of proof alone: a token that is left in the
// struct does not travel with an hmac.
func TestEncodeSendsOnlyWhatTheProofNeeds(t *testing.T) {
	all := envelope.Auth{KeyID: "K", Signature: "S", Token: "T", Scope: "C"}
	for kind, want := range map[envelope.AuthKind]string{
		envelope.AuthInternal:     `{"kind":"internal"}`,
		envelope.AuthHMAC:         `{"kind":"hmac","keyId":"K","signature":"S"}`,
		envelope.AuthOIDC:         `{"kind":"oidc","token":"T","keyId":"K"}`,
		envelope.AuthOAuth2Client: `{"kind":"oauth2-client","token":"T","scope":"C"}`,
	} {
		e := full()
		e.Auth = all
		e.Auth.Kind = kind
		data, err := e.Encode()
		if err != nil || !bytes.HasSuffix(data, []byte(`,"auth":`+want+"}")) {
			t.Errorf("%s: %s, %v", kind, data, err)
		}
	}
}

// Topics reach brokers and logs: white space and control characters stay out.
func TestReplyTo(t *testing.T) {
	for replyTo, ok := range map[string]bool{
		"": true, "nats://_INBOX.x.y": true, "memory://a": true, "kafka://a": true, "sqs://a": true, "amqp://a/b": true, "mqtt://a": true,
		"nats://é": true, "nats://~": true, "nats://\u0080": true,
		"nats://": false, "nats": false, "://a": false, "http://a": false, "NATS://a": false, "nats:a": false,
		"nats://a b": false, "nats://a\n": false, "nats://\x00": false, "nats://a\x7f": false, "nats://\xff": false,
	} {
		e := full()
		e.ReplyTo = replyTo
		if _, err := e.EncodeChecked(); (err == nil) != ok {
			t.Errorf("%q: %v", replyTo, err)
		}
	}
}

// Encoding allocates the message alone, however long its fields are.
func TestEncodeAllocatesOnce(t *testing.T) {
	e := full()
	e.Headers = e.Headers.With("long", strings.Repeat("x", 5000))
	e.Auth.KeyID = strings.Repeat("k", 2000)
	if got := alloctest.Least(100, func() {
		if _, err := e.EncodeChecked(); err != nil {
			t.Fatal(err)
		}
	}); got != 1 {
		t.Errorf("%v allocations", got)
	}
}
