package identity_test

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"testing"

	"github.com/agentd/agentd/envelope"
)

// BenchmarkProof compares what a proof adds to a message of 1 KB, at both ends,
// with the bare hash and with a signature.
func BenchmarkProof(b *testing.B) {
	e := message(alice, bob)
	e.Payload = []byte(`"` + string(make950()) + `"`)
	form := e.SigningForm()
	x, y := nkeyPair(b)
	auth, err := x.Sign(bob, form)
	if err != nil {
		b.Fatal(err)
	}
	e.Auth = auth
	b.Run("sign", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := x.Sign(bob, form); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("seal", func(b *testing.B) {
		b.ReportAllocs()
		buf, to := append(make([]byte, 0, 2048), form...), []byte(bob)
		for b.Loop() {
			buf[len(form)-1] = '}'
			if _, err := x.Seal(buf[:len(form)], to); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("verify", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if ok, err := y.Verify(e); err != nil || !ok {
				b.Fatal(err)
			}
		}
	})
	b.Run("raw-hmac", func(b *testing.B) {
		b.ReportAllocs()
		mac := hmac.New(sha256.New, []byte(secret))
		var sum [32]byte
		for b.Loop() {
			mac.Reset()
			mac.Write(form)
			mac.Sum(sum[:0])
		}
	})
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		b.Fatal(err)
	}
	signature := ed25519.Sign(private, form)
	b.Run("ed25519-sign", func(b *testing.B) {
		for b.Loop() {
			ed25519.Sign(private, form)
		}
	})
	b.Run("ed25519-verify", func(b *testing.B) {
		for b.Loop() {
			ed25519.Verify(public, form, signature)
		}
	})
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := e.EncodeSigned(x); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encode-unsigned", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			e.Auth = envelope.Auth{Kind: envelope.AuthInternal}
			if _, err := e.EncodeChecked(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func make950() []byte {
	out := make([]byte, 950)
	for i := range out {
		out[i] = 'a'
	}
	return out
}
