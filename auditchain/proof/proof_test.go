package proof

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/chainhash"
	"golang.org/x/mod/sumdb/tlog"
)

// single is the proof of the only record of a log.
func single(t testing.TB) (*Proof, *checkpoint.Keys) {
	t.Helper()
	key, err := checkpoint.GenerateKey("agentd.audit/single/1")
	if err != nil {
		t.Fatal(err)
	}
	salt, body := make([]byte, chainhash.SaltSize), []byte(`{"a":1}`)
	var scratch []byte
	h := chainhash.Header[string]{Seq: 1, Time: 1790000000000, Tenant: "acme", Kind: "rpc_call",
		Digest: chainhash.Digest(&scratch, salt, &chainhash.Content[string]{Peer: "agent://p", Body: string(body)})}
	previous := chainhash.Genesis(key.Verifier())
	note, err := checkpoint.Sign(checkpoint.Checkpoint{Origin: key.Name(), Size: 1, Root: chainhash.Record(&scratch, previous, &h)}, key.Signer())
	if err != nil {
		t.Fatal(err)
	}
	keys, err := checkpoint.NewKeys(key.Verifier())
	if err != nil {
		t.Fatal(err)
	}
	return &Proof{Format: Format, Previous: previous, Path: []tlog.Hash{}, Checkpoint: string(note), Record: Record{
		Seq: h.Seq, TS: h.Time, Tenant: h.Tenant, Kind: h.Kind, Digest: h.Digest,
		Content: &Content{Salt: salt, Peer: "agent://p", Body: body},
	}}, keys
}

func marshal(t testing.TB, p *Proof) []byte {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestVerify(t *testing.T) {
	made, keys := single(t)
	p, err := Parse(marshal(t, made))
	if err != nil {
		t.Fatal(err)
	}
	result, err := p.Verify(keys)
	if err != nil || result.Size != 1 || result.Origin != "agentd.audit/single/1" || !result.ContentShown || result.Time.UnixMilli() != 1790000000000 {
		t.Fatalf("%+v, %v", result, err)
	}
	// The body may have been printed in another way.
	p.Record.Content.Body = json.RawMessage("{ \"a\" : 1.0 }")
	if _, err := p.Verify(keys); err != nil {
		t.Error(err)
	}
	if _, err := p.Verify(&checkpoint.Keys{}); !errors.Is(err, checkpoint.ErrUntrusted) {
		t.Errorf("without a key: %v", err)
	}
}

func TestParseIsStrict(t *testing.T) {
	made, _ := single(t)
	good := string(marshal(t, made))
	for name, text := range map[string]string{
		"empty":         "",
		"not JSON":      "hello",
		"array":         "[]",
		"no format":     `{}`,
		"other format":  strings.Replace(good, Format, "agentd-audit-proof-v2", 1),
		"unknown":       strings.Replace(good, `"format"`, `"extra":1,"format"`, 1),
		"duplicate":     strings.Replace(good, `"format"`, `"path":[],"format"`, 1),
		"seq 0":         strings.Replace(good, `"seq":1`, `"seq":0`, 1),
		"seq huge":      strings.Replace(good, `"seq":1`, `"seq":1e30`, 1),
		"short hash":    strings.Replace(good, `"previous":"`, `"previous":"AA`, 1),
		"long path":     strings.Replace(good, `"path":[]`, `"path":[`+strings.Repeat(`"`+tlog.Hash{}.String()+`",`, 63)+`"`+tlog.Hash{}.String()+`"]`, 1),
		"array body":    strings.Replace(good, `"body":{"a":1}`, `"body":[]`, 1),
		"more text":     good + "{}",
		"cut":           good[:len(good)-1],
		"too long":      good + strings.Repeat(" ", MaxBytes),
		"invalid UTF-8": strings.Replace(good, "acme", "\xff", 1),
	} {
		if _, err := Parse([]byte(text)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	made, keys := single(f)
	f.Add(marshal(f, made))
	f.Add([]byte(`{"format":"agentd-audit-proof-v1","record":{"seq":1},"path":[],"checkpoint":"x\n1\n"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Parse(text)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatal(err)
			}
			return
		}
		result, err := p.Verify(keys)
		if err != nil {
			return
		}
		// Whatever passes says what the signed record says.
		if p.Record.Seq != 1 || p.Record.TS != made.Record.TS || p.Record.Tenant != "acme" || p.Record.Kind != "rpc_call" || result.Size != 1 {
			t.Fatalf("a forged proof passes: %s", text)
		}
		if again, err := Parse(marshal(t, p)); err != nil {
			t.Fatalf("does not parse again: %+v, %v", again, err)
		}
	})
}
