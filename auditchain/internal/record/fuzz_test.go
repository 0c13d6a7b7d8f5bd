package record

import (
	"encoding/json"
	"strings"
	"testing"
)

// Whatever is given as a body is refused, or is an object whose columns are
// those that a JSON decoder finds in it.
func FuzzRecord(f *testing.F) {
	for _, seed := range []string{
		`{"peerId":"agent://p","side":"request","x":{"peerId":"inner"}}`, `{"sessionId":"a\"b\\c\u00e9","peerId":7}`,
		`{"correlationId":"","capabilityName":null,"a":[{"b":"]}"}]}`, `{"ts":1}`, `{}`, `[]`, `{"peerId":"a\nb"}`, ``,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		var p Prepared
		if err := p.Prepare(&Record{Kind: KindRPCCall, Body: json.RawMessage(body)}); err != nil {
			return
		}
		c := p.Content
		var members map[string]any
		if err := json.Unmarshal([]byte(c.Body), &members); err != nil {
			t.Fatalf("%q became %q", body, c.Body)
		}
		for name, column := range map[string]string{
			"peerId": c.Peer, "capabilityName": c.Capability, "side": c.Side, "correlationId": c.Correlation, "sessionId": c.Session,
		} {
			want, _ := members[name].(string)
			if checkColumn(want) != nil {
				want = ""
			}
			if column != want {
				t.Fatalf("%q: column for %s is %q, want %q", body, name, column, want)
			}
		}
		for _, own := range []string{"kind", "ts", "tenantId"} {
			if _, ok := members[own]; ok {
				t.Fatalf("%q: has %s", body, own)
			}
		}
		e := Entry{Kind: KindRPCCall, Tenant: p.Header.Tenant, Body: json.RawMessage(c.Body)}
		if text, err := json.Marshal(&e); err != nil || !strings.HasPrefix(string(text), `{"kind":"rpc_call","ts":`) {
			t.Fatalf("%s, %v", text, err)
		}
	})
}
