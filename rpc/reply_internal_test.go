package rpc

import (
	"testing"

	"github.com/agentd/agentd/internal/ijson"
)

// FuzzBareAnswer: what is taken out of a reply without reading it, and turns out
// to be one value, is what reading finds.
func FuzzBareAnswer(f *testing.F) {
	for _, seed := range []string{
		`{"ok":true,"data":{"a":[1,"}"]}}`, `{"ok":true,"data":null}`, `{"ok":true,"data":1,"later":{}}`, `{"ok":true,"data":}`,
		`{"ok":true,"data":1}}`, `{"ok":true,"data": 1 }`, `{"ok":true,"data":1,"ok":false,"error":{"code":"X"}}`, `{"ok":true,"data":"`, `{"ok":true}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		bare, ok := bareAnswer(payload)
		if ijson.Check(payload, envelopeDepth) != nil || !ok || ijson.Check(bare, envelopeDepth) != nil {
			return
		}
		read, err := parseReply(payload)
		if err != nil {
			t.Fatalf("%s: %v", payload, err)
		}
		if string(bare) != string(read) {
			t.Errorf("%s: taken out %s, read %s", payload, bare, read)
		}
	})
}
