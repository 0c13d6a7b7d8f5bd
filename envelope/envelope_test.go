package envelope_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/agentd/agentd/envelope"
)

// minimal is the smallest legal message, as a peer in another language would
// write it: keys in an order of its own, white space between them.
const minimal = ` { "to":"agent://b", "from":"agent://a", "capability":"echo", "kind":"request",
  "correlationId":"c1", "messageId":"m1", "version":1 } `

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

func TestDecodeReadsForeignSpelling(t *testing.T) {
	e, err := envelope.Decode([]byte(minimal))
	if err != nil {
		t.Fatal(err)
	}
	if e.From != "agent://a" || e.To != "agent://b" || e.MessageID != "m1" || e.Payload != nil || e.Auth != (envelope.Auth{}) {
		t.Errorf("got %+v", e)
	}
	e, err = envelope.Decode([]byte(strings.Replace(minimal, `"kind"`, `"payload":null,"\u006bind"`, 1)))
	if err != nil || e.Kind != envelope.Request || string(e.Payload) != "null" {
		t.Errorf("an escaped key and a null payload: %+v, %v", e, err)
	}
	e, err = envelope.Decode([]byte(strings.Replace(minimal, `"m1"`, `"m\u0031\n"`, 1)))
	if err != nil || e.MessageID != "m1\n" {
		t.Errorf("an escaped value: %+v, %v", e, err)
	}
}

// with returns the minimal message with one member added or replaced.
func with(member string) string {
	key, _, _ := strings.Cut(member, ":")
	var kept []string
	for _, m := range []string{
		`"version":1`, `"kind":"request"`, `"messageId":"m"`, `"correlationId":"c"`,
		`"from":"agent://a"`, `"to":"agent://b"`, `"capability":"x"`,
	} {
		if !strings.HasPrefix(m, key+":") {
			kept = append(kept, m)
		}
	}
	if strings.HasSuffix(member, ":") {
		return "{" + strings.Join(kept, ",") + "}" // member left out
	}
	return "{" + strings.Join(append(kept, member), ",") + "}"
}

func TestDecodeRefuses(t *testing.T) {
	for _, test := range []struct{ name, in, want string }{
		{"wrong version", with(`"version":2`), "version: must be 1"},
		{"version as text", with(`"version":"1"`), "version: must be 1"},
		{"no version", with(`"version":`), "version: is missing"},
		{"no kind", with(`"kind":`), "kind: is missing"},
		{"unknown kind", with(`"kind":"reply"`), "kind: must be request"},
		{"empty message id", with(`"messageId":""`), "messageId: must be a non-empty string"},
		{"no correlation id", with(`"correlationId":`), "correlationId: is missing"},
		{"empty causedBy", with(`"causedBy":""`), "causedBy: must be"},
		{"foreign from", with(`"from":"http://a"`), "from: must be agent://<id>"},
		{"from with a path", with(`"from":"agent://a/../b"`), "from: must be agent://<id>"},
		{"from with a newline", with(`"from":"agent://a\nb"`), "from: must be agent://<id>"},
		{"to without id", with(`"to":"agent://"`), "to: must be agent://<id>"},
		{"capability not text", with(`"capability":7`), "capability: must be a non-empty string"},
		{"replyTo over http", with(`"replyTo":"http://x"`), "replyTo: must be <transport>://<topic>"},
		{"replyTo with a space", with(`"replyTo":"nats://a b"`), "replyTo: must be <transport>://<topic>"},
		{"deadline zero", with(`"deadline":0`), "deadline: must be a positive integer"},
		{"deadline negative", with(`"deadline":-1`), "deadline: must be a positive integer"},
		{"deadline fraction", with(`"deadline":1.5`), "deadline: must be a positive integer"},
		{"deadline beyond a double", with(`"deadline":99999999999999999999999`), "deadline: must be a positive integer"},
		{"header not text", with(`"headers":{"a":1}`), `headers: the value of "a" must be a string`},
		{"headers a list", with(`"headers":[]`), "headers: must be an object"},
		{"hmac without signature", with(`"auth":{"kind":"hmac","keyId":"k"}`), "auth: hmac needs keyId and signature"},
		{"unknown auth", with(`"auth":{"kind":"magic"}`), "auth: kind must be"},
		{"unknown key", with(`"prio":1`), `unknown key "prio"`},
		{"an array", `[]`, "<root>: must be an object"},
		{"two faults at once", with(`"kind":"x","deadline":0`), "kind: must be request, response or event; deadline: must be"},
		{"not JSON", `{"version":1`, "envelope is not valid JSON: "},
		{"empty", ``, "envelope is not valid JSON: "},
		{"bytes after it", minimal + "x", "envelope is not valid JSON: "},
		{"repeated key", with(`"kind":"request","kind":"event"`), "duplicate key"},
		{"repeated header", with(`"headers":{"a":"1","a":"2"}`), "duplicate key"},
		{"repeated header, spelled otherwise", with(`"headers":{"a":"1","\u0061":"2"}`), "duplicate key"},
		{"repeated header among many", with(`"headers":{"1":"","2":"","3":"","4":"","5":"","6":"","7":"","8":"","9":"","1":""}`), "duplicate key"},
		{"repeated header that is no text", with(`"headers":{"a":1,"a":2}`), "duplicate key"},
		{"repeated headers", with(`"headers":{},"headers":{}`), "duplicate key"},
		{"repeated auth member", with(`"auth":{"kind":"internal","kind":"internal"}`), "duplicate key"},
		{"repeated payload member", with(`"payload":{"a":1,"\u0061":2}`), "duplicate key"},
		{"bad UTF-8", with("\"capability\":\"\xff\""), "envelope is not valid JSON: "},
		{"lone surrogate", with(`"capability":"\ud800"`), "envelope is not valid JSON: "},
		{"deep payload", with(`"payload":` + strings.Repeat("[", 1e6)), "envelope is not valid JSON: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			e, err := envelope.Decode([]byte(test.in))
			if err == nil {
				t.Fatalf("decoded %+v", e)
			}
			var typed *envelope.Error
			if !errors.As(err, &typed) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %q, want one with %q", err, test.want)
			}
			if envelope.IsNotJSON(err) != strings.HasPrefix(err.Error(), "envelope is not valid JSON") {
				t.Errorf("IsNotJSON(%v) = %v", err, envelope.IsNotJSON(err))
			}
		})
	}
}

func TestErrorHoldsNoPayload(t *testing.T) {
	_, err := envelope.Decode([]byte(with(`"payload":{"password":"hunter2","password":"hunter2"}`)))
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("error %v", err)
	}
}

func TestEncodeRefuses(t *testing.T) {
	for name, change := range map[string]func(*envelope.Envelope){
		"kind":       func(e *envelope.Envelope) { e.Kind = "" },
		"messageId":  func(e *envelope.Envelope) { e.MessageID = "" },
		"from":       func(e *envelope.Envelope) { e.From = "agent://A" },
		"to":         func(e *envelope.Envelope) { e.To = "b" },
		"capability": func(e *envelope.Envelope) { e.Capability = "\xff" },
		"replyTo":    func(e *envelope.Envelope) { e.ReplyTo = "x" },
		"deadline":   func(e *envelope.Envelope) { e.Deadline = -1 },
		"headers":    func(e *envelope.Envelope) { e.Headers = envelope.Headers{{Key: "\xff"}} },
		"auth":       func(e *envelope.Envelope) { e.Auth = envelope.Auth{Kind: "magic"} },
		"payload":    func(e *envelope.Envelope) { e.Payload = json.RawMessage(`{"a":}`) },
	} {
		e := full()
		change(e)
		if _, err := e.Encode(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v does not name it", name, err)
		}
	}
}

func TestHeaders(t *testing.T) {
	h := envelope.Headers{{Key: "a", Value: "1"}, {Key: "b", Value: "2"}}
	if got := h.With("a", "3"); len(got) != 2 || h[0].Value != "1" {
		t.Errorf("With changed its receiver or kept both: %v from %v", got, h)
	}
	if _, ok := h.With("b", "").Get("b"); ok {
		t.Error("an empty value does not remove the key")
	}
	if v, ok := h.Get("b"); !ok || v != "2" {
		t.Errorf("Get(b) = %q, %v", v, ok)
	}
}

func TestDecodeAliasesOnlyThePayload(t *testing.T) {
	data, err := full().Encode()
	if err != nil {
		t.Fatal(err)
	}
	e, err := envelope.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		data[i] = 'X'
	}
	if e.From != "agent://concierge" || e.Headers[0].Value != "00-ab-cd-01" || e.Payload[0] != 'X' {
		t.Errorf("after the buffer was reused: %+v", e)
	}
}

func TestAddress(t *testing.T) {
	for _, good := range []string{"agent://a", "agent://0", "agent://pr-reviewer", "agent://a.b_c-d", "agent://" + strings.Repeat("a", 128)} {
		if a, err := envelope.ParseAddress(good); err != nil || envelope.AddressOf(a.ID()) != a {
			t.Errorf("%s: %v, %v", good, a, err)
		}
	}
	for bad, reason := range map[string]string{
		"":                                    "agent must be `agent://<id>`",
		"pr-reviewer":                         "agent must be `agent://<id>`",
		"agent://":                            "empty",
		"agent://-a":                          "must start with",
		"agent://A":                           "must start with",
		"agent://a/b":                         "may hold",
		"agent://a\n":                         "may hold",
		"agent://a..b":                        "`..`",
		"agent://" + strings.Repeat("a", 129): "longer than",
	} {
		_, err := envelope.ParseAddress(bad)
		var typed *envelope.AddressError
		if !errors.As(err, &typed) || !strings.Contains(err.Error(), reason) {
			t.Errorf("%q: error %v, want %q", bad, err, reason)
		}
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
}

// FuzzDecode: what decodes also encodes, and decodes to the same message.
func FuzzDecode(f *testing.F) {
	seed, _ := full().Encode()
	f.Add(seed)
	f.Add([]byte(minimal))
	f.Add([]byte(with(`"auth":{"kind":"oidc","token":"t","extra":[1]}`)))
	f.Add([]byte(`{"version":1,"kind":"\u0072equest"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := envelope.Decode(data)
		if err != nil {
			var typed *envelope.Error
			if !errors.As(err, &typed) || len(typed.Faults) == 0 {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if !json.Valid(data) {
			t.Fatal("decoded what encoding/json refuses")
		}
		out, err := e.Encode()
		if err != nil {
			t.Fatalf("decoded, but does not encode: %v", err)
		}
		back, err := envelope.Decode(out)
		if err != nil {
			t.Fatalf("encoded, but does not decode: %v\n%s", err, out)
		}
		if fmt.Sprintf("%+v", *back) != fmt.Sprintf("%+v", *e) {
			t.Fatalf("round trip changed\n%+v\n%+v", e, back)
		}
	})
}

func Benchmark(b *testing.B) {
	e := full()
	e.Payload = json.RawMessage(`{"prUrl":"https://github.com/agentd/agentd/pull/1234","severity":"med","note":"` + strings.Repeat("x", 110) + `"}`)
	e.Auth = envelope.Auth{Kind: envelope.AuthInternal}
	data, err := e.Encode()
	if err != nil {
		b.Fatal(err)
	}
	b.Run("EncodeDecode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			data, err := e.EncodeChecked()
			if err != nil {
				b.Fatal(err)
			}
			if _, err := envelope.Decode(data); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := envelope.Decode(data); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("StdlibUnmarshal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var v struct {
				Version                                                                                      int
				Kind, MessageID, CorrelationID, CausedBy, From, To, Capability, ReplyTo, TenantID, Signature string
				Deadline                                                                                     int64
				Headers                                                                                      map[string]string
				Payload                                                                                      json.RawMessage
			}
			if err := json.Unmarshal(data, &v); err != nil {
				b.Fatal(err)
			}
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
