package envelope_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/envelope"
)

// minimal is the smallest legal message, as a peer in another language would
// write it: keys in an order of its own, white space between them.
const minimal = ` { "to":"agent://b", "from":"agent://a", "capability":"echo", "kind":"request",
  "correlationId":"c1", "messageId":"m1", "version":1 } `

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
		{"deadline as text", with(`"deadline":"1800000000000"`), "deadline: must be a positive integer"},
		{"deadline true", with(`"deadline":true`), "deadline: must be a positive integer"},
		{"deadline with an exponent", with(`"deadline":18e11`), "deadline: must be a positive integer"},
		{"empty replyTo", with(`"replyTo":""`), "replyTo: must be a non-empty string"},
		{"replyTo without a topic", with(`"replyTo":"nats://"`), "replyTo: must be <transport>://<topic>"},
		{"replyTo without a transport", with(`"replyTo":"a.b"`), "replyTo: must be <transport>://<topic>"},
		{"empty tenant", with(`"tenantId":""`), "tenantId: must be a non-empty string"},
		{"from not text", with(`"from":[]`), "from: must be a non-empty string"},
		{"to not text", with(`"to":null`), "to: must be a non-empty string"},
		{"no from", with(`"from":`), "from: is missing"},
		{"no to", with(`"to":`), "to: is missing"},
		{"no message id", with(`"messageId":`), "messageId: is missing"},
		{"no capability", with(`"capability":`), "capability: is missing"},
		{"auth as text", with(`"auth":"internal"`), "auth: must be an object"},
		{"auth without a kind", with(`"auth":{}`), "auth: kind must be"},
		{"auth of a kind that is no text", with(`"auth":{"kind":1}`), "auth: kind must be"},
		{"hmac without key id", with(`"auth":{"kind":"hmac","signature":"00"}`), "auth: hmac needs keyId and signature"},
		{"oidc without token", with(`"auth":{"kind":"oidc","keyId":"k"}`), "auth: oidc needs token"},
		{"oauth2 without token", with(`"auth":{"kind":"oauth2-client","scope":"a"}`), "auth: oauth2-client needs token"},
		{"header not text", with(`"headers":{"a":1}`), `headers: the value of "a" must be a string`},
		{"headers a list", with(`"headers":[]`), "headers: must be an object"},
		{"hmac without signature", with(`"auth":{"kind":"hmac","keyId":"k"}`), "auth: hmac needs keyId and signature"},
		{"unknown auth", with(`"auth":{"kind":"magic"}`), "auth: kind must be"},
		{"unknown key", with(`"prio":1`), `unknown key "prio"`},
		{"long unknown key", with(`"` + strings.Repeat("é", 40) + `":1`), `unknown key "` + strings.Repeat("é", 20) + `…"`},
		{"forged unknown key", with(`"a\nb\u001b":1`), `unknown key "a\nb\u001b"`},
		{"a text", ` "x" `, "<root>: must be an object"},
		{"malformed, and no object", `[1,`, "envelope is not valid JSON: "},
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
			if typed != nil && typed.NotJSON != strings.HasPrefix(err.Error(), "envelope is not valid JSON") {
				t.Errorf("NotJSON of %v is %v", err, typed.NotJSON)
			}
		})
	}
}

// A message may end anywhere, as it does when a broker or a peer cuts it. Whatever
// is missing, the answer is an error and no panic.
func TestDecodeRefusesEveryBeginning(t *testing.T) {
	whole, err := full().Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, message := range []string{string(whole), minimal, with(`"headers":{"a":1 , "b":[2]}`), with(`"auth":{"kind" : "oidc","token":"t","x":{"y":[]}}`)} {
		message = strings.TrimSpace(message)
		for i := range message {
			_, err := envelope.Decode([]byte(message[:i]))
			if typed, ok := errors.AsType[*envelope.Error](err); !ok || !typed.NotJSON || len(typed.Faults) != 1 {
				t.Fatalf("%q is decoded: %v", message[:i], err)
			}
		}
	}
}

// The walk over an object is this package's own: it must refuse what
// encoding/json refuses.
func TestDecodeKnowsTheGrammar(t *testing.T) {
	for _, broken := range []string{
		`{,}`, `{"version":1,}`, `{"version" 1}`, `{"version":}`, `{"version":1 "kind":"event"}`, `{version:1}`, `{"version":1]`, `{"version":1}}`,
		`{"version":01}`, `{"version":1:2}`, `{"version",1}`, `{"\x":1}`, `{"version":1`, `{"headers":{"a" "b"}}`, `{"headers":{"a":"b",}}`,
		`{"headers":{"a":"b"`, `{"headers":{"a":}}`, `{"headers":{a:"b"}}`, `{"auth":{"kind"}}`, `{"auth":{"kind":}}`,
		`{"auth":{"kind":"internal"`, `{"auth":{"token":"\x"}}`, `{"auth":}`, `{"payload":}`, `{"payload":nul}`, `{"deadline":-}`, `{"deadline":1.}`,
	} {
		if json.Valid([]byte(broken)) {
			t.Fatalf("%s is JSON", broken)
		}
		_, err := envelope.Decode([]byte(broken))
		if typed, ok := errors.AsType[*envelope.Error](err); !ok || !typed.NotJSON {
			t.Errorf("%s: %v", broken, err)
		}
	}
}

func TestDecodeReadsEveryKind(t *testing.T) {
	for _, kind := range []envelope.Kind{envelope.Request, envelope.Response, envelope.Event} {
		if e, err := envelope.Decode([]byte(with(fmt.Sprintf(`"kind":%q`, kind)))); err != nil || e.Kind != kind {
			t.Errorf("%s: %+v, %v", kind, e, err)
		}
	}
}

// Each optional field arrives in its own place, and what is absent stays zero.
func TestDecodeReadsEveryField(t *testing.T) {
	for member, got := range map[string]func(*envelope.Envelope) string{
		`"causedBy":"v"`:               func(e *envelope.Envelope) string { return e.CausedBy },
		`"tenantId":"v"`:               func(e *envelope.Envelope) string { return e.TenantID },
		`"replyTo":"nats://v"`:         func(e *envelope.Envelope) string { return strings.TrimPrefix(e.ReplyTo, "nats://") },
		`"messageId":"v"`:              func(e *envelope.Envelope) string { return e.MessageID },
		`"correlationId":"v"`:          func(e *envelope.Envelope) string { return e.CorrelationID },
		`"capability":"v"`:             func(e *envelope.Envelope) string { return e.Capability },
		`"from":"agent://v"`:           func(e *envelope.Envelope) string { return e.From.ID() },
		`"to":"agent://v"`:             func(e *envelope.Envelope) string { return e.To.ID() },
		`"headers":{"v":""}`:           func(e *envelope.Envelope) string { return e.Headers[0].Key },
		`"headers":{"k":"v"}`:          func(e *envelope.Envelope) string { return e.Headers[0].Value },
		`"payload":"v"`:                func(e *envelope.Envelope) string { return strings.Trim(string(e.Payload), `"`) },
		`"auth":{"kind" : "internal"}`: func(e *envelope.Envelope) string { return strings.Replace(string(e.Auth.Kind), "internal", "v", 1) },
	} {
		e, err := envelope.Decode([]byte(with(member)))
		if err != nil || got(e) != "v" {
			t.Errorf("%s: %+v, %v", member, e, err)
		}
	}
	e, err := envelope.Decode([]byte(with(`"version":1`)))
	if err != nil || e.CausedBy+e.TenantID+e.ReplyTo != "" || e.Headers != nil || e.Deadline != 0 || e.Payload != nil {
		t.Errorf("without optional fields: %+v, %v", e, err)
	}
}

// Deadlines are integers that a double holds exactly. A number that overflows must
// not come out as one that looks like a deadline.
func TestDecodeDeadlines(t *testing.T) {
	for text, want := range map[string]int64{ // 0: refused
		"1":                                 1,
		"9":                                 9,
		"1800000000000":                     1_800_000_000_000,
		"9007199254740991":                  1<<53 - 1,
		"9007199254740992":                  1 << 53,
		"9007199254740993":                  0,
		"9007199254740999":                  0,
		"90071992547409920":                 0,
		"9223372036854775807":               0, // 2^63-1
		"18446744073709551617":              0, // 2^64+1, which is 1 in 64 bits
		"184467440737095516160000000000001": 0,
		"1.0":                               0, "1e3": 0, "-1": 0, "0": 0,
	} {
		e, err := envelope.Decode([]byte(with(`"deadline":` + text)))
		switch {
		case want == 0 && (err == nil || !strings.Contains(err.Error(), "deadline: must be a positive integer")):
			t.Errorf("%s: %+v, %v", text, e, err)
		case want != 0 && (err != nil || e.Deadline != want):
			t.Errorf("%s: %+v, %v", text, e, err)
		}
	}
}

// Peers in other languages write keys in an order of their own, with white space
// and escapes where they like: it is the same message.
func TestDecodeReadsAnySpelling(t *testing.T) {
	space := rapid.SampledFrom([]string{"", " ", "\n\t", "\r\n  "})
	members := []string{
		`"version":1`, `"kind":"request"`, `"messageId":"m-1"`, `"correlationId":"c-1"`, `"causedBy":"m-0"`, `"from":"agent://concierge"`,
		`"to":"agent://pr-reviewer"`, `"capability":"review-pr"`, `"replyTo":"memory://_inbox.1.c-1"`, `"deadline":1800000000000`, `"tenantId":"acme"`,
		`"headers":{"traceparent":"00-ab-cd-01","x-note":"a \"quoted\"\nline"}`, `"payload":{"b":1.0, "a":[1e2]}`,
		`"auth":{"kind":"hmac","keyId":"k1","signature":"` + strings.Repeat("ab", 32) + `"}`,
	}
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		b.WriteString(space.Draw(t, "before") + "{")
		for i, member := range rapid.Permutation(members).Draw(t, "order") {
			if i > 0 {
				b.WriteString(",")
			}
			key, value, _ := strings.Cut(member, ":")
			if rapid.Bool().Draw(t, "escape") {
				key = fmt.Sprintf(`"\u%04x%s`, key[1], key[2:])
			}
			b.WriteString(space.Draw(t, "space") + key + space.Draw(t, "space") + ":" + space.Draw(t, "space") + value + space.Draw(t, "space"))
		}
		b.WriteString("}" + space.Draw(t, "after"))
		e, err := envelope.Decode([]byte(b.String()))
		if err != nil || !reflect.DeepEqual(e, full()) {
			t.Fatalf("%v\n%s\nis %+v", err, b.String(), e)
		}
	})
}

// A key that version 1 does not define may be one that a later version acts on:
// it is refused rather than ignored, whatever its value and place.
func TestDecodeRefusesAnyUnknownKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.StringMatching(`[a-zA-Z_]{1,20}`).Draw(t, "key")
		switch key {
		case "version", "kind", "messageId", "correlationId", "causedBy", "from", "to", "capability", "replyTo", "deadline", "tenantId", "headers",
			"payload", "auth":
			t.Skip("a known key")
		}
		value := rapid.SampledFrom([]string{`1`, `"x"`, `null`, `{"a":[]}`, `[1,2]`, `true`}).Draw(t, "value")
		message := with(fmt.Sprintf("%q:%s", key, value))
		if rapid.Bool().Draw(t, "first") {
			message = fmt.Sprintf("{%q:%s,", key, value) + with(`"version":1`)[1:]
		}
		_, err := envelope.Decode([]byte(message))
		typed, ok := errors.AsType[*envelope.Error](err)
		if want := (envelope.Fault{Path: "<root>", Message: fmt.Sprintf("unknown key %q", key)}); !ok || len(typed.Faults) != 1 || typed.Faults[0] != want {
			t.Fatalf("%s: %v", message, err)
		}
	})
}

// Peers may add members to auth, of any type; what is known of it is read.
func TestDecodeReadsAuth(t *testing.T) {
	for text, want := range map[string]envelope.Auth{
		`{"kind":"internal","x":1}`: {Kind: envelope.AuthInternal},
		`{"\u006bind":"h\u006dac","keyId":"k\n","signature":"ab","alg":["x"]}`:      {Kind: envelope.AuthHMAC, KeyID: "k\n", Signature: "ab"},
		`{"x":{"kind":"hmac"},"kind":"oidc","token":"t","keyId":"k"}`:               {Kind: envelope.AuthOIDC, Token: "t", KeyID: "k"},
		`{"kind":"oauth2-client","token":"t","scope":"a b","issued":-1.5,"z":null}`: {Kind: envelope.AuthOAuth2Client, Token: "t", Scope: "a b"},
	} {
		e, err := envelope.Decode([]byte(with(`"auth":` + text)))
		if err != nil || e.Auth != want {
			t.Errorf("%s: %+v, %v", text, e, err)
		}
	}
}

// However much is wrong with a message, the error stays small: it travels back to
// the sender and into logs.
func TestDecodeBoundsItsFaults(t *testing.T) {
	var members []string
	for i := range 1000 {
		members = append(members, fmt.Sprintf(`"k%d":%d`, i, i))
	}
	_, err := envelope.Decode([]byte("{" + strings.Join(members, ",") + "}"))
	typed, ok := errors.AsType[*envelope.Error](err)
	if !ok || len(typed.Faults) != 16 || typed.NotJSON {
		t.Fatalf("got %v, want 16 faults", err)
	}
	if want := (envelope.Fault{Path: "<root>", Message: `unknown key "k0"`}); typed.Faults[0] != want {
		t.Errorf("the first is %+v, want %+v", typed.Faults[0], want)
	}
	_, err = envelope.Decode([]byte(`[]`))
	if typed, ok := errors.AsType[*envelope.Error](err); !ok || len(typed.Faults) != 1 {
		t.Errorf("an array has no missing keys besides: %v", err)
	}
	// A key is shown in full up to 40 bytes.
	for length, shown := range map[int]string{40: strings.Repeat("k", 40) + `"`, 41: strings.Repeat("k", 40) + `…"`} {
		if _, err := envelope.Decode([]byte(with(`"` + strings.Repeat("k", length) + `":1`))); err == nil || !strings.HasSuffix(err.Error(), shown) {
			t.Errorf("a key of %d bytes: %v", length, err)
		}
	}
}

// A message nests at most [envelope.MaxDepth] deep, itself included, in any place
// of it.
func TestDepthIsBounded(t *testing.T) {
	nested := func(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }
	for member, room := range map[string]int{
		`"payload":%s`:                      envelope.MaxDepth - 1,
		`"auth":{"kind":"internal","x":%s}`: envelope.MaxDepth - 2,
		`"headers":{"a":%s}`:                envelope.MaxDepth - 2,
		`"headers":%s`:                      envelope.MaxDepth - 1,
	} {
		tooDeep := func(depth int) bool {
			_, err := envelope.Decode([]byte(with(fmt.Sprintf(member, nested(depth)))))
			return err != nil && strings.Contains(err.Error(), "nested too deeply")
		}
		if tooDeep(room) || !tooDeep(room+1) {
			t.Errorf("%s: %d levels refused %v, one more %v", member, room, tooDeep(room), tooDeep(room+1))
		}
	}
	// What encodes can be decoded: the encoder knows the same bound.
	e := full()
	for depth, ok := range map[int]bool{envelope.MaxDepth - 1: true, envelope.MaxDepth: false} {
		e.Payload = json.RawMessage(nested(depth))
		data, err := e.Encode()
		if (err == nil) != ok {
			t.Errorf("a payload of %d levels: %v", depth, err)
		}
		if err == nil {
			if _, err := envelope.Decode(data); err != nil {
				t.Errorf("a payload of %d levels is encoded and not decoded: %v", depth, err)
			}
		}
	}
}

func TestErrorHoldsNoPayload(t *testing.T) {
	_, err := envelope.Decode([]byte(with(`"payload":{"password":"hunter2","password":"hunter2"}`)))
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("error %v", err)
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
