package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain/internal/auditerr"
	"github.com/agentd/agentd/auditchain/internal/chainhash"
	"pgregory.net/rapid"
)

// jsonText draws any JSON value, nested at most depth deep.
func jsonText(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		kinds := 4
		if depth > 0 {
			kinds = 6
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return rapid.SampledFrom([]string{"null", "true", "false"}).Draw(t, "literal")
		case 1:
			return fmt.Sprint(rapid.Int32().Draw(t, "number"))
		case 2, 3:
			text, err := json.Marshal(rapid.StringOfN(rapid.RuneFrom([]rune("ab\"\\{}[]:,é\n")), 0, 6, -1).Draw(t, "string"))
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		case 4:
			return "[" + strings.Join(rapid.SliceOfN(jsonText(depth-1), 0, 3).Draw(t, "array"), ",") + "]"
		}
		var list []string
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "peerId", "side", "ts", `}`, `"`, `\`}), 0, 3, rapid.ID[string]).Draw(t, "names") {
			quoted, err := json.Marshal(name)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, string(quoted)+":"+jsonText(depth-1).Draw(t, "member"))
		}
		return "{" + strings.Join(list, ",") + "}"
	})
}

// The columns that are copied from a body are those that a JSON decoder finds at
// its top level, however the values around them are nested and escaped.
func TestColumnsOfAnyBody(t *testing.T) {
	t.Parallel()
	names := []string{"peerId", "capabilityName", "side", "correlationId", "sessionId", "x", "y"}
	rapid.Check(t, func(t *rapid.T) {
		body := map[string]json.RawMessage{}
		for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID[string]).Draw(t, "names") {
			body[name] = json.RawMessage(jsonText(2).Draw(t, name))
		}
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		var p Prepared
		if err := p.Prepare(&Record{Kind: KindRPCCall, Body: text}); err != nil {
			t.Fatal(err)
		}
		c := p.Content
		for name, column := range map[string]string{
			"peerId": c.Peer, "capabilityName": c.Capability, "side": c.Side, "correlationId": c.Correlation, "sessionId": c.Session,
		} {
			var want string
			if json.Unmarshal(body[name], &want) != nil || strings.Contains(want, "\n") {
				want = "" // no string, or one that no column holds
			}
			if column != want {
				t.Fatalf("%s: column for %s is %q, want %q", text, name, column, want)
			}
		}
	})
}

// Two spellings of one object have one canonical form, and so, under one salt, one
// digest.
func TestSpellingsOfOneBody(t *testing.T) {
	t.Parallel()
	const canonical = `{"a":[1,2.5,"é"],"b":{"c":null,"d":"/"}}`
	var digest []byte
	for _, body := range []string{
		canonical, `{"b":{"d":"/","c":null},"a":[1,2.5,"é"]}`, " {\t\"a\" : [ 1.0 , 25e-1,\r\n\"\\u00e9\" ] , \"b\":{\"c\":null,\"d\":\"\\/\"} } \n",
	} {
		var p Prepared
		if err := p.Prepare(&Record{Kind: KindRPCCall, Body: json.RawMessage(body)}); err != nil {
			t.Fatal(err)
		}
		if p.Content.Body != canonical {
			t.Errorf("%s became %s", body, p.Content.Body)
		}
		var scratch []byte
		got := chainhash.Digest(&scratch, make([]byte, chainhash.SaltSize), &p.Content)
		if digest != nil && !bytes.Equal(digest, got[:]) {
			t.Errorf("%s has another digest", body)
		}
		digest = got[:]
	}
}

// Each part of a record is in its digest: none can be changed unnoticed.
func TestDigestCoversEveryColumn(t *testing.T) {
	t.Parallel()
	whole := Record{Kind: KindRPCCall, Peer: "p", Capability: "c", Side: SideRequest, Correlation: "k", Session: "s", Body: json.RawMessage(`{"a":1}`)}
	digest := func(r Record) [32]byte {
		t.Helper()
		var p Prepared
		if err := p.Prepare(&r); err != nil {
			t.Fatal(err)
		}
		var scratch []byte
		return chainhash.Digest(&scratch, make([]byte, chainhash.SaltSize), &p.Content)
	}
	seen := map[[32]byte]string{digest(whole): "nothing"}
	for name, change := range map[string]func(*Record){
		"peer":                   func(r *Record) { r.Peer = "q" },
		"no peer":                func(r *Record) { r.Peer = "" },
		"capability":             func(r *Record) { r.Capability = "d" },
		"side":                   func(r *Record) { r.Side = SideResponse },
		"correlation":            func(r *Record) { r.Correlation = "l" },
		"session":                func(r *Record) { r.Session = "t" },
		"body":                   func(r *Record) { r.Body = json.RawMessage(`{"a":2}`) },
		"a column moved on":      func(r *Record) { r.Peer, r.Capability = "", "p" },
		"text moved over":        func(r *Record) { r.Peer, r.Capability = "pc", "" },
		"two columns exchanged":  func(r *Record) { r.Correlation, r.Session = r.Session, r.Correlation },
		"a column into the body": func(r *Record) { r.Session, r.Body = "", json.RawMessage(`{"a":1,"s":"s"}`) },
	} {
		r := whole
		change(&r)
		got := digest(r)
		if other, ok := seen[got]; ok {
			t.Errorf("after a change of %s the digest is that after %s", name, other)
		}
		seen[got] = name
	}
}

// A tenant is never derived from a body: a caller must not choose it by its
// payload.
func TestTenantComesFromTheRecordOnly(t *testing.T) {
	t.Parallel()
	for tenant, want := range map[string]string{"": DefaultTenant, "acme": "acme", DefaultTenant: DefaultTenant} {
		var p Prepared
		if err := p.Prepare(&Record{Kind: KindRPCCall, Tenant: tenant, Body: json.RawMessage(`{"tenant":"evil"}`)}); err != nil || p.Header.Tenant != want {
			t.Errorf("%q became %q, %v", tenant, p.Header.Tenant, err)
		}
	}
}

// The members of the log's own records are read by verifiers of any version.
func TestOwnRecordsAreStable(t *testing.T) {
	t.Parallel()
	for want, body := range map[string]any{
		`{"reason":"r","match":"session","ranges":[[1,2],[5,5]],"count":3}`: Redaction{Reason: "r", Match: "session", Ranges: [][2]int64{{1, 2}, {5, 5}}, Count: 3},
		`{"through":5,"before":1790000000000,"count":5,"reason":"r"}`:       Pruning{Through: 5, Before: 1790000000000, Count: 5, Reason: "r"},
		`{"event":"key-rotated","key":"b","previous":"a"}`:                  KeyChange{Event: KeyRotated, Key: "b", Previous: "a"},
		`{"event":"key-replaced","key":"b","previous":"a"}`:                 KeyChange{Event: KeyReplaced, Key: "b", Previous: "a"},
	} {
		if got, err := json.Marshal(body); err != nil || string(got) != want {
			t.Errorf("got %s, %v; want %s", got, err, want)
		}
	}
	for _, empty := range []Redaction{{}, {Ranges: [][2]int64{{5, 3}}}} {
		for seq := range int64(8) {
			if empty.Covers(seq) {
				t.Errorf("%+v covers %d", empty, seq)
			}
		}
	}
}

// The names of the kinds are in every log and in every consumer's filter.
func TestKindNamesAreStable(t *testing.T) {
	t.Parallel()
	const want = "capability_schema_violation payload_capture rpc_call auth_check permission_denied approval " +
		"rate_limited validation_exceeded schema_drift tool_call lifecycle redaction prune checkpoint"
	if got := strings.Trim(fmt.Sprint(Kinds()), "[]"); got != want {
		t.Errorf("kinds %s", got)
	}
	Kinds()[0] = "changed by a caller"
	if !KindSchemaViolation.Valid() {
		t.Error("the set of kinds was changed from outside")
	}
}

// A captured payload is kept byte for byte, also where it is no JSON.
func TestCapturedBytes(t *testing.T) {
	t.Parallel()
	v := wholeViolation()
	for _, payload := range []string{"", "{", `{"b":1, "a":"é"}`, "null\n", strings.Repeat(`"`, 300)} {
		r, err := v.CapturePayload([]byte(payload), 1<<10).Record("")
		if err != nil {
			t.Fatal(err)
		}
		var p Prepared
		if err := p.Prepare(&r); err != nil {
			t.Fatal(err)
		}
		e := Entry{Kind: r.Kind, Tenant: p.Header.Tenant, Time: time.UnixMilli(1), Body: json.RawMessage(p.Content.Body)}
		text, err := json.Marshal(&e)
		var got struct {
			TenantID string `json:"tenantId"`
			PayloadCapture
		}
		if err = errors.Join(err, json.Unmarshal(text, &got)); err != nil || got.Payload != payload || got.Bytes != len(payload) || got.TenantID != DefaultTenant {
			t.Errorf("%q became %+v, %v", payload, got, err)
		}
		if p.Content.Peer != v.PeerID || p.Content.Session != v.SessionID || p.Content.Side != string(v.Side) {
			t.Errorf("a capture is not found by its call: %+v", p.Content)
		}
	}
}

// A refused violation is the caller's fault, says which field, and repeats no
// value.
func TestViolationErrorsKeepValuesToThemselves(t *testing.T) {
	t.Parallel()
	v := wholeViolation()
	v.Side, v.SessionID = "secret-side", "secret-session"
	_, err := v.Record()
	if e, ok := errors.AsType[*auditerr.Error](err); !ok || e.Code != auditerr.CodeInvalid || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
	e := Entry{Seq: 9, Kind: KindSchemaViolation, Body: json.RawMessage(`{"violations":"secret"}`)}
	if _, err := e.SchemaViolation(); err == nil || !strings.Contains(err.Error(), "record 9") {
		t.Errorf("got %v", err)
	}
	e.ErasedBy = 12
	if _, err := e.SchemaViolation(); err == nil || !strings.Contains(err.Error(), "record 12") {
		t.Errorf("got %v", err)
	}
}
