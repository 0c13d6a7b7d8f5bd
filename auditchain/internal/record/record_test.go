package record

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain/internal/auditerr"
	"github.com/agentd/agentd/auditchain/internal/chainhash"
)

func TestKinds(t *testing.T) {
	t.Parallel()
	reserved := []Kind{KindRedaction, KindPrune, KindCheckpoint}
	for _, kind := range Kinds() {
		if !kind.Valid() || kind.Reserved() != slices.Contains(reserved, kind) {
			t.Errorf("%s: valid %t, reserved %t", kind, kind.Valid(), kind.Reserved())
		}
	}
	if len(Kinds()) != 14 || Kind("").Valid() || Kind("no_such_kind").Valid() {
		t.Error("the set of kinds is not what is documented")
	}
}

func TestPrepareRejects(t *testing.T) {
	t.Parallel()
	text := func(n int) json.RawMessage {
		quoted, err := json.Marshal(strings.Repeat("x", n))
		if err != nil {
			t.Fatal(err)
		}
		return json.RawMessage(`{"a":` + string(quoted) + `}`)
	}
	const frame = len(`{"a":""}`)
	for name, test := range map[string]struct {
		record Record
		fault  string // "" if the record is good
	}{
		"empty":              {Record{}, ""},
		"array body":         {Record{Body: json.RawMessage(`[]`)}, "not a JSON object"},
		"string body":        {Record{Body: json.RawMessage(`"{}"`)}, "not a JSON object"},
		"broken body":        {Record{Body: json.RawMessage(`{"a":`)}, "the body: "},
		"duplicate members":  {Record{Body: json.RawMessage(`{"a":1,"a":2}`)}, "the body: "},
		"largest body":       {Record{Body: text(MaxBodyBytes - frame)}, ""},
		"larger body":        {Record{Body: text(MaxBodyBytes - frame + 1)}, "more than 1048576"},
		"own ts":             {Record{Body: json.RawMessage(`{"ts":1}`)}, `member "ts"`},
		"own kind":           {Record{Body: json.RawMessage(`{"a":1,"kind":"x"}`)}, `member "kind"`},
		"own tenant":         {Record{Body: json.RawMessage(`{"tenantId":"x"}`)}, `member "tenantId"`},
		"inner ts":           {Record{Body: json.RawMessage(`{"a":{"ts":1,"kind":[]}}`)}, ""},
		"longest column":     {Record{Peer: strings.Repeat("x", MaxColumnBytes)}, ""},
		"longer column":      {Record{Peer: strings.Repeat("x", MaxColumnBytes+1)}, "more than 1024"},
		"longer tenant":      {Record{Tenant: strings.Repeat("x", MaxColumnBytes+1)}, "more than 1024"},
		"newline":            {Record{Session: "a\nb"}, "control character"},
		"unit separator":     {Record{Capability: "a\x1f"}, "control character"},
		"delete":             {Record{Correlation: "\x7f"}, "control character"},
		"space, tilde":       {Record{Correlation: " ~"}, ""},
		"control in side":    {Record{Side: "\x00"}, "control character"},
		"invalid UTF-8":      {Record{Tenant: "\xff"}, "UTF-8"},
		"text that is UTF-8": {Record{Tenant: "é😀"}, ""},
	} {
		var p Prepared
		err := p.Prepare(&test.record)
		if (err == nil) != (test.fault == "") || err != nil && !strings.Contains(err.Error(), test.fault) {
			t.Errorf("%s: got %v, want %q", name, err, test.fault)
		}
	}
}

func TestColumnsComeFromTheBody(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", MaxColumnBytes)
	all := `"peerId":"agent://a","capabilityName":"c","side":"request","correlationId":"k","sessionId":"s\u00e9"`
	for _, test := range []struct {
		record Record
		want   chainhash.Content[string]
	}{
		{Record{}, chainhash.Content[string]{}},
		{Record{Body: json.RawMessage(`{"x":{"peerId":"inner"},` + all + `}`)},
			chainhash.Content[string]{Peer: "agent://a", Capability: "c", Side: "request", Correlation: "k", Session: "sé"}},
		{Record{Peer: "p", Capability: "q", Side: SideResponse, Correlation: "r", Session: "t", Body: json.RawMessage(`{` + all + `}`)},
			chainhash.Content[string]{Peer: "p", Capability: "q", Side: "response", Correlation: "r", Session: "t"}},
		{Record{Body: json.RawMessage(`{"peerId":["agent://a"],"sessionId":7,"side":null,"correlationId":{"a":"}"},"capabilityName":true}`)}, chainhash.Content[string]{}},
		{Record{Body: json.RawMessage(`{"sessionId":"` + long + `","peerId":"` + long + `y"}`)}, chainhash.Content[string]{Session: long}},
		{Record{Body: json.RawMessage(`{"sessionId":"a\nb","peerId":"a\"b\\c"}`)}, chainhash.Content[string]{Peer: `a"b\c`}},
		{Record{Body: json.RawMessage(`{"a":[[],{"b":"]}\""}],"b":-1.5e3,"sessionId":"last"}`)}, chainhash.Content[string]{Session: "last"}},
	} {
		var p Prepared
		if err := p.Prepare(&test.record); err != nil {
			t.Fatal(err)
		}
		got := p.Content
		got.Body = ""
		if got.Peer != test.want.Peer || got.Capability != test.want.Capability || got.Side != test.want.Side ||
			got.Correlation != test.want.Correlation || got.Session != test.want.Session {
			t.Errorf("%s: got %+v, want %+v", test.record.Body, got, test.want)
		}
	}
}

func TestPreparedHeader(t *testing.T) {
	t.Parallel()
	r := Record{Kind: KindRPCCall, Body: json.RawMessage("{ \"b\": 1.50,\n\"a\": 2 }")}
	var p, again Prepared
	for _, into := range []*Prepared{&p, &again} {
		if err := into.Prepare(&r); err != nil {
			t.Fatal(err)
		}
	}
	if p.Content.Body != `{"a":2,"b":1.5}` || p.Header.Tenant != DefaultTenant || p.Header.Kind != string(KindRPCCall) {
		t.Errorf("%+v", p)
	}
	var scratch []byte
	if p.Header.Digest != chainhash.Digest(&scratch, p.Salt[:], &p.Content) {
		t.Error("the digest is not that of the content")
	}
	if p.Salt == again.Salt || p.Header.Digest == again.Header.Digest {
		t.Error("two records share a salt")
	}
	if r.Tenant != "" {
		t.Error("the caller's record was changed")
	}
}

func TestEntryJSON(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1790000000123)
	for want, e := range map[string]Entry{
		`{"kind":"rpc_call","ts":1790000000123,"tenantId":"t\"1"}`:                 {Kind: KindRPCCall, Time: at, Tenant: `t"1`, Body: json.RawMessage(`{}`)},
		`{"kind":"rpc_call","ts":1790000000123,"tenantId":"t","a":1}`:              {Kind: KindRPCCall, Time: at, Tenant: "t", Body: json.RawMessage(`{"a":1}`)},
		`{"kind":"approval","ts":1790000000123,"tenantId":"t","erasedBy":9}`:       {Kind: KindApproval, Time: at, Tenant: "t", ErasedBy: 9},
		`{"kind":"approval","ts":1790000000123,"tenantId":"default","erasedBy":1}`: {Kind: KindApproval, Time: at, Tenant: DefaultTenant, ErasedBy: 1, Body: json.RawMessage(`{"a":1}`)},
	} {
		text, err := json.Marshal(&e)
		if err != nil || string(text) != want {
			t.Errorf("got %s, %v\nwant %s", text, err, want)
		}
	}
}

func TestRedactionCovers(t *testing.T) {
	t.Parallel()
	r := Redaction{Ranges: [][2]int64{{3, 5}, {9, 9}}}
	var covered []int64
	for seq := range int64(12) {
		if r.Covers(seq) {
			covered = append(covered, seq)
		}
	}
	if want := []int64{3, 4, 5, 9}; !slices.Equal(covered, want) {
		t.Errorf("covers %v, want %v", covered, want)
	}
}

func wholeViolation() SchemaViolation {
	return SchemaViolation{
		TenantID: "acme", CapabilityName: "review-pr", PeerID: "agent://pr-reviewer", Side: SideResponse,
		Violations: []Violation{{Path: "/verdict", Message: "value not in enum"}}, CorrelationID: "c-1", SessionID: "s-1",
	}
}

func TestSchemaViolationRoundTrip(t *testing.T) {
	t.Parallel()
	v := wholeViolation()
	r, err := v.Record()
	if err != nil || r.Kind != KindSchemaViolation || r.Tenant != "acme" {
		t.Fatalf("%+v, %v", r, err)
	}
	var p Prepared
	if err := p.Prepare(&r); err != nil {
		t.Fatal(err)
	}
	e := Entry{Kind: r.Kind, Tenant: p.Header.Tenant, Time: time.UnixMilli(1790000000123), Body: json.RawMessage(p.Content.Body)}
	text, err := json.Marshal(&e)
	want := `{"kind":"capability_schema_violation","ts":1790000000123,"tenantId":"acme","capabilityName":"review-pr","correlationId":"c-1","peerId":"agent://pr-reviewer","sessionId":"s-1","side":"response","violations":[{"message":"value not in enum","path":"/verdict"}]}`
	if err != nil || string(text) != want {
		t.Errorf("got  %s, %v\nwant %s", text, err, want)
	}
	again, err := e.SchemaViolation()
	v.TS = 1790000000123
	if err != nil || again.TS != v.TS || again.TenantID != v.TenantID || again.CapabilityName != v.CapabilityName || again.PeerID != v.PeerID ||
		again.Side != v.Side || again.CorrelationID != v.CorrelationID || again.SessionID != v.SessionID || !slices.Equal(again.Violations, v.Violations) {
		t.Errorf("read back %+v, %v", again, err)
	}
	// A violation and its entry marshal to the same members.
	marshalled, err := json.Marshal(again)
	var a, b map[string]any
	if err != nil || json.Unmarshal(text, &a) != nil || json.Unmarshal(marshalled, &b) != nil || len(a) != len(b) || b["kind"] != a["kind"] || b["ts"] != a["ts"] {
		t.Errorf("marshals to %s, %v", marshalled, err)
	}
	if text, err := json.Marshal(SchemaViolation{}); err != nil || !strings.Contains(string(text), `"violations":[]`) {
		t.Errorf("without violations: %s, %v", text, err)
	}
}

func TestSchemaViolationNeedsItsFields(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*SchemaViolation){
		"capabilityName": func(v *SchemaViolation) { v.CapabilityName = "" },
		"peerId":         func(v *SchemaViolation) { v.PeerID = "" },
		"side":           func(v *SchemaViolation) { v.Side = "up" },
		"correlationId":  func(v *SchemaViolation) { v.CorrelationID = "" },
		"violation":      func(v *SchemaViolation) { v.Violations = nil },
	} {
		v := wholeViolation()
		change(&v)
		if _, err := v.Record(); auditerr.CodeOf(err) != auditerr.CodeInvalid || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
	v := wholeViolation()
	v.SessionID, v.Side = "", SideRequest
	if r, err := v.Record(); err != nil || strings.Contains(string(r.Body), "sessionId") {
		t.Errorf("a session is not required: %s, %v", r.Body, err)
	}
}

func TestEntriesThatAreNoViolation(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]Entry{
		"another kind": {Kind: KindRPCCall, Body: json.RawMessage(`{}`)},
		"erased":       {Kind: KindSchemaViolation, ErasedBy: 7},
		"broken":       {Kind: KindSchemaViolation, Body: json.RawMessage(`{"violations":1}`)},
	} {
		if _, err := e.SchemaViolation(); auditerr.CodeOf(err) != auditerr.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPayloadCapture(t *testing.T) {
	t.Parallel()
	v := wholeViolation()
	for limit, payload := range map[int]string{0: "", 6: "", 7: `{"a":1}`, 8: `{"a":1}`} {
		c := v.CapturePayload([]byte(`{"a":1}`), limit)
		if c.Bytes != 7 || c.Payload != payload || c.CapabilityName != v.CapabilityName || c.PeerID != v.PeerID || c.Side != v.Side ||
			c.CorrelationID != v.CorrelationID || c.SessionID != v.SessionID {
			t.Errorf("limit %d: %+v", limit, c)
		}
		r, err := c.Record("acme")
		if err != nil || r.Kind != KindPayloadCapture || r.Tenant != "acme" || strings.Contains(string(r.Body), `"payload":`) != (payload != "") {
			t.Errorf("limit %d: %+v, %v", limit, r, err)
		}
	}
}
