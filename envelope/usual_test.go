package envelope_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/alloctest"
)

// sameDecoded fails unless both decoders make the same of a text: the same message, or
// the same faults.
func sameDecoded(t interface{ Fatalf(string, ...any) }, data []byte) {
	got, err := envelope.Decode(data)
	want, wantErr := envelope.DecodeAny(data)
	if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(err, wantErr) {
		t.Fatalf("%q\nis %+v, %v\nand %+v, %v", data, got, err, want, wantErr)
	}
}

// seeds are messages that the quick decoder reads to different lengths.
func seeds(t testing.TB) [][]byte {
	t.Helper()
	var all [][]byte
	for _, change := range []func(*envelope.Envelope){
		func(*envelope.Envelope) {},
		func(e *envelope.Envelope) { e.Auth = full().Auth },
		func(e *envelope.Envelope) { e.Auth = envelope.Auth{} },
		func(e *envelope.Envelope) { e.Auth = envelope.Auth{Kind: envelope.AuthOIDC, Token: "t"} },
		func(e *envelope.Envelope) { e.Headers = nil },
		func(e *envelope.Envelope) { e.Headers = envelope.Headers{{Key: "é", Value: ""}, {}} },
		func(e *envelope.Envelope) { e.Headers = e.Headers.With("a", "1").With("b", "2").With("c", "\n") },
		func(e *envelope.Envelope) {
			for c := byte('a'); c < 'l'; c++ {
				e.Headers = e.Headers.With(string(c), "v")
			}
		},
		func(e *envelope.Envelope) { e.Payload = nil },
		func(e *envelope.Envelope) { e.Payload = json.RawMessage(` {"a": [1]}`) },
		func(e *envelope.Envelope) { e.Payload = json.RawMessage(`7`) },
		func(e *envelope.Envelope) { e.CausedBy, e.TenantID, e.Kind = "m", "t", envelope.Response },
		func(e *envelope.Envelope) { e.ReplyTo, e.Deadline, e.Kind = "", 0, envelope.Event },
		func(e *envelope.Envelope) { e.Capability = "日本 é" },
	} {
		e := usual()
		change(e)
		data, err := e.Encode()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, data)
	}
	return all
}

// Whatever becomes of a message on its way, the quick decoder judges as the other does.
func TestDecodersAgree(t *testing.T) {
	all := seeds(t)
	pieces := []string{
		`"`, `\`, `,`, `:`, `{`, `}`, `[`, ` `, `0`, `1`, `9007199254740993`, "\xff", "é", "\x00", "\n", `\n`, `\u0061`, "..", ",\"payload\":1", `,"headers":{}`,
		`,"auth":{"kind":"internal"}`, `"a":"b",`, `"x-agentd-hops":"2",`, `agent://A`, `,"tenantId":""`, `,"deadline":0`, `null`,
	}
	const apart = 5 // every place in one message or another
	for from, data := range all {
		sameDecoded(t, data)
		for i := from % apart; i < len(data); i += apart {
			sameDecoded(t, data[:i])
			sameDecoded(t, append(bytes.Clone(data[:i]), data[i+1:]...))
			piece := pieces[i%len(pieces)]
			sameDecoded(t, append(append(bytes.Clone(data[:i]), piece...), data[i:]...))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		data := bytes.Clone(rapid.SampledFrom(all).Draw(t, "message"))
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			at := rapid.IntRange(0, len(data)).Draw(t, "at")
			upTo := min(len(data), at+rapid.IntRange(0, 12).Draw(t, "instead of"))
			piece := rapid.OneOf(rapid.SampledFrom(pieces), rapid.StringN(0, 3, -1)).Draw(t, "piece")
			data = append(append(bytes.Clone(data[:at]), piece...), data[upTo:]...)
		}
		sameDecoded(t, data)
	})
}

// FuzzDecodersAgree looks for a message of which the decoders make different things.
func FuzzDecodersAgree(f *testing.F) {
	for _, data := range seeds(f) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { sameDecoded(t, data) })
}

// A message costs its encoding, its envelope and its text, with and without a proof, up
// to four headers.
func TestCodecAllocates(t *testing.T) {
	for name, auth := range map[string]envelope.Auth{"claimed": {Kind: envelope.AuthInternal}, "proven": full().Auth} {
		e := usual()
		e.Auth, e.Payload = auth, nil // to skip a payload takes scratch space from a pool, which makes it vary
		e.Headers = e.Headers.With("a", strings.Repeat("x", 1000)).With("b", "")
		if got := alloctest.Least(100, func() {
			data, err := e.EncodeChecked()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := envelope.Decode(data); err != nil {
				t.Fatal(err)
			}
		}); got != 3 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
}

// What is appended stands behind what was there.
func TestAppend(t *testing.T) {
	want, err := usual().EncodeChecked()
	if err != nil {
		t.Fatal(err)
	}
	got, err := usual().AppendChecked([]byte("before"))
	if err != nil || string(got) != "before"+string(want) {
		t.Errorf("%v: %s", err, got)
	}
	if cap(want)-len(want) > 40 {
		t.Errorf("room for %d bytes beside %d", cap(want)-len(want), len(want))
	}
	buf := make([]byte, 3, 4096)
	proof := signer{auth: full().Auth}
	signed, err := usual().EncodeSigned(proof)
	if err != nil {
		t.Fatal(err)
	}
	got, err = usual().AppendSigned(buf, proof)
	if err != nil || !bytes.Equal(got, signed) || &got[0] != &buf[0] {
		t.Errorf("%v: %s", err, got)
	}
}

// The encoder refuses exactly what Check refuses, and the addresses that it takes are
// those that can be parsed.
func TestEncodeChecksEveryField(t *testing.T) {
	text := rapid.OneOf(rapid.Just(""), rapid.StringN(0, 20, -1), rapid.SampledFrom([]string{"\xff", "plain", "日本", "a\x7f", strings.Repeat("x", 30) + "\xc0"}))
	address := rapid.OneOf(rapid.StringMatching(`agent://[a-z0-9_.A-]{0,4}`), rapid.StringMatching(`agent://[a-z0-9]{127,129}`), text)
	reply := rapid.OneOf(rapid.StringMatching(`(nats|memory|kafka|sqs|amqp|mqtt|http|)(://|:)[a-z>.\x00 \x7f]{0,20}`), rapid.Just("nats://é"), text)
	rapid.Check(t, func(t *rapid.T) {
		e := usual()
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			switch rapid.IntRange(0, 11).Draw(t, "field") {
			case 0:
				e.Kind = envelope.Kind(rapid.SampledFrom([]string{"", "request", "response", "event", "x"}).Draw(t, "kind"))
			case 1:
				e.MessageID = text.Draw(t, "message id")
			case 2:
				e.CorrelationID = text.Draw(t, "correlation id")
			case 3:
				e.CausedBy = text.Draw(t, "caused by")
			case 4:
				e.From = envelope.Address(address.Draw(t, "from"))
			case 5:
				e.To = envelope.Address(address.Draw(t, "to"))
			case 6:
				e.Capability = text.Draw(t, "capability")
			case 7:
				e.ReplyTo = reply.Draw(t, "reply to")
			case 8:
				e.Deadline = rapid.Int64Range(-1, 1).Draw(t, "deadline")
			case 9:
				e.TenantID = text.Draw(t, "tenant")
			case 10:
				e.Headers = envelope.Headers{{Key: text.Draw(t, "key"), Value: text.Draw(t, "value")}}
			case 11:
				e.Auth = rapid.SampledFrom([]envelope.Auth{{}, {Kind: "hmac"}, {Kind: "oidc", Token: "t"}, {Kind: "x"}}).Draw(t, "auth")
			}
		}
		want := e.Check()
		data, err := e.EncodeChecked()
		if !reflect.DeepEqual(err, want) || (data == nil) != (err != nil) {
			t.Fatalf("%+v: encoded %s, %v, and checked %v", e, data, err, want)
		}
		if _, parsed := envelope.ParseAddress(string(e.From)); err == nil && parsed != nil {
			t.Fatalf("%q is encoded, and not parsed: %v", e.From, parsed)
		}
		_, from := envelope.ParseAddress(string(e.From))
		typed, _ := errors.AsType[*envelope.Error](want)
		if named := typed != nil && slices.ContainsFunc(typed.Faults, func(f envelope.Fault) bool { return f.Path == "from" }); named != (from != nil) {
			t.Fatalf("%q is refused %v, and parsed with %v", e.From, named, from)
		}
		if err != nil {
			return
		}
		if back, err := envelope.Decode(data); err != nil || !reflect.DeepEqual(back, e) {
			t.Fatalf("%+v, %v, is decoded of %s", back, err, data)
		}
	})
}
