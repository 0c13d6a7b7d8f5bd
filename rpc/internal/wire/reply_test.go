package wire

import (
	"testing"

	"github.com/agentd/agentd/internal/ijson"
)

// FuzzBareAnswer: an answer that is cut out of a reply and turns out to be one value
// is the one that parsing finds.
func FuzzBareAnswer(f *testing.F) {
	for _, seed := range []string{
		`{"ok":true,"data":{"a":[1,"}"]}}`, `{"ok":true,"data":null}`, `{"ok":true,"data":1,"later":{}}`, `{"ok":true,"data":}`,
		`{"ok":true,"data":1}}`, `{"ok":true,"data": 1 }`, `{"ok":true,"data":1,"ok":false,"error":{"code":"X"}}`, `{"ok":true,"data":"`, `{"ok":true}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		bare, ok := BareAnswer(payload)
		if ijson.Check(payload, MaxDepth) != nil || !ok || ijson.Check(bare, MaxDepth) != nil {
			return
		}
		read, err := ParseReply(payload)
		if err != nil {
			t.Fatalf("%s: %v", payload, err)
		}
		if string(bare) != string(read) {
			t.Errorf("%s: cut out %s, parsed %s", payload, bare, read)
		}
	})
}
