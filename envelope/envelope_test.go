package envelope_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/envelope"
)

func full() *envelope.Envelope {
	return &envelope.Envelope{
		Kind: envelope.Request, MessageID: "m-1", CorrelationID: "c-1", CausedBy: "m-0",
		From: "agent://concierge", To: "agent://pr-reviewer", Capability: "review-pr",
		ReplyTo: "memory://_inbox.1.c-1", Deadline: 1_800_000_000_000, TenantID: "acme",
		Headers: envelope.Headers{{Key: "traceparent", Value: "00-ab-cd-01"}, {Key: "x-note", Value: "a \"quoted\"\nline"}},
		Payload: json.RawMessage(`{"b":1.0, "a":[1e2]}`),
		Auth:    envelope.Auth{Kind: envelope.AuthHMAC, KeyID: "k1", Signature: strings.Repeat("ab", 32)},
	}
}

func TestRoundTrip(t *testing.T) {
	auths := map[string]envelope.Auth{
		"none":     {},
		"internal": {Kind: envelope.AuthInternal},
		"hmac":     full().Auth,
		"oidc":     {Kind: envelope.AuthOIDC, Token: "t", KeyID: "k"},
		"oauth2":   {Kind: envelope.AuthOAuth2Client, Token: "t", Scope: "a b"},
	}
	for name, auth := range auths {
		t.Run(name, func(t *testing.T) {
			e := full()
			e.Auth = auth
			data, err := e.Encode()
			if err != nil {
				t.Fatal(err)
			}
			back, err := envelope.Decode(data)
			if err != nil {
				t.Fatal(err)
			}
			again, err := back.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(data, again) {
				t.Errorf("encode, decode, encode changed the message:\n%s\n%s", data, again)
			}
			if !json.Valid(data) {
				t.Errorf("not JSON: %s", data)
			}
		})
	}
}

func TestEncodePinsTheWire(t *testing.T) {
	data, err := full().Encode()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"version":1,"kind":"request","messageId":"m-1","correlationId":"c-1","causedBy":"m-0",` +
		`"from":"agent://concierge","to":"agent://pr-reviewer","capability":"review-pr",` +
		`"replyTo":"memory://_inbox.1.c-1","deadline":1800000000000,"tenantId":"acme",` +
		`"headers":{"traceparent":"00-ab-cd-01","x-note":"a \"quoted\"\nline"},` +
		`"payload":{"b":1.0, "a":[1e2]},"auth":{"kind":"hmac","keyId":"k1","signature":"` + strings.Repeat("ab", 32) + `"}}`
	if string(data) != want {
		t.Errorf("got  %s\nwant %s", data, want)
	}
	signed := strings.TrimSuffix(want[:strings.Index(want, `,"auth"`)], "") + "}"
	if got := string(full().SigningForm()); got != signed {
		t.Errorf("signing form\ngot  %s\nwant %s", got, signed)
	}
}

// Strings are written as encoding/json writes them without escaping for HTML,
// wherever the character that needs an escape stands.
func TestEncodeEscapes(t *testing.T) {
	for c := range rune(0x100) {
		for before := range 20 {
			s := strings.Repeat("x", before) + string(c) + strings.Repeat("é", 10) + string(c)
			e := full()
			e.Capability = s
			data, err := e.Encode()
			if err != nil {
				t.Fatal(err)
			}
			var back struct{ Capability string }
			if err := json.Unmarshal(data, &back); err != nil || back.Capability != s {
				t.Fatalf("%q became %q: %v", s, back.Capability, err)
			}
			if again, err := envelope.Decode(data); err != nil || again.Capability != s {
				t.Fatalf("%q is not decoded again: %v", s, err)
			}
		}
	}
}

// The signing form is what JSON.stringify writes (ECMA-262, QuoteJSONString): a
// peer in JavaScript computes its proof over these bytes.
func TestQuotesAsJSONStringifyDoes(t *testing.T) {
	want := map[rune]string{'\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '"': `\"`, '\\': `\\`}
	for c := range rune(0x20) {
		if want[c] == "" {
			want[c] = fmt.Sprintf(`\u%04x`, c)
		}
	}
	for _, plain := range " !#/09[]^`az~<>&'\x7f\u0080é\u2028\u2029\ufeff\U0001f600" {
		want[plain] = string(plain)
	}
	for c, text := range want {
		// The scanner takes eight bytes at a time: each place in a word counts.
		for before := range 17 {
			e := full()
			e.Capability = strings.Repeat("x", before) + string(c) + "y"
			form := string(e.SigningForm())
			if member := `,"capability":"` + strings.Repeat("x", before) + text + `y",`; !strings.Contains(form, member) {
				t.Fatalf("%q behind %d bytes: want %s in %s", c, before, member, form)
			}
		}
	}
}

// Whatever the fields hold, the message that is decoded is the one that was encoded.
func TestAnyMessageRoundTrips(t *testing.T) {
	text, id := rapid.String(), rapid.StringMatching(`[a-z0-9][a-z0-9_-]{0,20}`)
	some := rapid.StringN(1, 40, -1)
	rapid.Check(t, func(t *rapid.T) {
		e := &envelope.Envelope{
			Kind:      rapid.SampledFrom([]envelope.Kind{envelope.Request, envelope.Response, envelope.Event}).Draw(t, "kind"),
			MessageID: some.Draw(t, "message id"), CorrelationID: some.Draw(t, "correlation id"), CausedBy: text.Draw(t, "caused by"),
			From: envelope.AddressOf(id.Draw(t, "from")), To: envelope.AddressOf(id.Draw(t, "to")), Capability: some.Draw(t, "capability"),
			TenantID: text.Draw(t, "tenant"), Deadline: rapid.Int64Range(0, 1<<53).Draw(t, "deadline"),
			ReplyTo: rapid.SampledFrom([]string{"", "nats://a.b", "memory://_inbox.1.2"}).Draw(t, "reply to"),
		}
		for key, value := range rapid.MapOfN(text, text, 0, 12).Draw(t, "headers") {
			e.Headers = append(e.Headers, envelope.Header{Key: key, Value: value})
		}
		if payload, err := json.Marshal(text.Draw(t, "payload")); err == nil && rapid.Bool().Draw(t, "with payload") {
			e.Payload = payload
		}
		data, err := e.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(data) {
			t.Fatalf("not JSON: %s", data)
		}
		got, err := envelope.Decode(data)
		if err != nil || !reflect.DeepEqual(got, e) {
			t.Fatalf("%v\ngot  %+v\nwant %+v", err, got, e)
		}
	})
}

func Example() {
	e := &envelope.Envelope{
		Kind: envelope.Request, MessageID: "m1", CorrelationID: "c1",
		From: "agent://concierge", To: "agent://pr-reviewer", Capability: "review-pr",
		Payload: json.RawMessage(`{"severity":"med"}`),
	}
	data, err := e.Encode()
	fmt.Println(string(data), err)
	_, err = envelope.Decode([]byte(`{"version":2}`))
	fmt.Println(err)
	// Output:
	// {"version":1,"kind":"request","messageId":"m1","correlationId":"c1","from":"agent://concierge","to":"agent://pr-reviewer","capability":"review-pr","payload":{"severity":"med"}} <nil>
	// invalid agent-rpc envelope: version: must be 1; kind: is missing; messageId: is missing; correlationId: is missing; from: is missing; to: is missing; capability: is missing
}
