package export

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/agentd/agentd/auditchain"
	"pgregory.net/rapid"
)

const origin = "agentd.audit/reviewer/1"

// entryOf is a record of a kind with every column set.
func entryOf(kind auditchain.Kind) auditchain.Entry {
	return auditchain.Entry{
		Seq: 41, Time: time.UnixMilli(1790000000123), Tenant: "acme", Kind: kind, Peer: "agent://b", Capability: "pay",
		Side: auditchain.SideResponse, Correlation: "c-1", Session: "s-1", Body: json.RawMessage(`{"event":"e","n":1}`),
	}
}

// rejected lists the kinds that a SIEM should raise above the others.
func rejected(kind auditchain.Kind) bool {
	switch kind {
	case auditchain.KindSchemaViolation, auditchain.KindPermissionDenied, auditchain.KindRateLimited,
		auditchain.KindValidationExceeded, auditchain.KindSchemaDrift:
		return true
	}
	return false
}

// at returns the member of decoded JSON under a path of names and indexes, or nil.
func at(v any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(in) {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	return v
}

// decoded decodes one exported line.
func decoded(t *testing.T, f Format, e auditchain.Entry) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(encode(t, f, e)), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// want compares members of decoded JSON.
func want(t *testing.T, v any, members map[string]any) {
	t.Helper()
	for path, value := range members {
		if got := at(v, path); got != value {
			t.Errorf("%s is %v (%T), want %v", path, got, got, value)
		}
	}
}

func TestEveryKindAsJSONLines(t *testing.T) {
	t.Parallel()
	for _, kind := range auditchain.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			want(t, decoded(t, JSONL, entryOf(kind)), map[string]any{
				"agentd.uid": origin + "/41", "agentd.origin": origin, "agentd.seq": 41.0,
				"record.kind": string(kind), "record.ts": 1790000000123.0, "record.tenantId": "acme", "record.n": 1.0,
			})
		})
	}
}

// What an OCSF consumer routes by: class, category, type, severity and time, and
// the members that the class requires.
func TestEveryKindAsOCSF(t *testing.T) {
	t.Parallel()
	for _, kind := range auditchain.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			members := map[string]any{
				"category_uid": 6.0, "class_uid": 6003.0, "activity_id": 99.0, "type_uid": 600399.0, "activity_name": string(kind),
				"severity_id": 1.0, "status_id": nil, "time": 1790000000123.0,
				"metadata.version": "1.6.0", "metadata.product.name": "agentd", "metadata.uid": origin + "/41", "metadata.log_name": origin,
				"metadata.event_code": string(kind), "metadata.tenant_uid": "acme", "metadata.correlation_uid": "c-1", "metadata.sequence": 41.0,
				"actor.app_name": origin, "actor.session.uid": "s-1", "api.operation": "pay", "api.service.name": "agent://b", "src_endpoint.name": origin,
				"app": nil, "unmapped.kind": string(kind), "unmapped.n": 1.0,
			}
			if rejected(kind) {
				members["severity_id"], members["status_id"] = 3.0, 2.0
			}
			if kind == auditchain.KindLifecycle { // a class about the agent, not about a call
				members["class_uid"], members["type_uid"], members["app"] = 6002.0, 600299.0, at(decoded(t, OCSF, entryOf(kind)), "app")
				for _, call := range []string{"actor.app_name", "actor.session.uid", "api.operation", "api.service.name", "src_endpoint.name"} {
					members[call] = nil
				}
				want(t, decoded(t, OCSF, entryOf(kind)), map[string]any{"app.name": "agentd", "app.vendor_name": "agentd"})
				delete(members, "app")
			}
			want(t, decoded(t, OCSF, entryOf(kind)), members)
		})
	}
}

// API Activity requires an operation, an actor and a source even of a record
// without columns.
func TestOCSFOfARecordWithoutColumns(t *testing.T) {
	t.Parallel()
	v := decoded(t, OCSF, auditchain.Entry{Seq: 1, Tenant: "default", Kind: auditchain.KindAuthCheck, Body: json.RawMessage(`{}`)})
	want(t, v, map[string]any{
		"api.operation": "auth_check", "api.service": nil, "actor.app_name": origin, "actor.session": nil, "src_endpoint.name": origin,
		"metadata.correlation_uid": nil, "metadata.tenant_uid": "default",
	})
}

// Starts and stops have the numbers of OCSF whichever tense the event is in.
func TestOCSFLifecycleActivities(t *testing.T) {
	t.Parallel()
	for body, activity := range map[string]float64{
		`{"event":"start"}`: 3, `{"event":"started"}`: 3, `{"event":"stop"}`: 4, `{"event":"stopped"}`: 4,
		`{"event":"restart"}`: 99, `{"event":7}`: 99, `{}`: 99,
	} {
		v := decoded(t, OCSF, auditchain.Entry{Seq: 1, Tenant: "t", Kind: auditchain.KindLifecycle, Body: json.RawMessage(body)})
		want(t, v, map[string]any{"activity_id": activity, "type_uid": 600200 + activity})
	}
	erased := decoded(t, OCSF, auditchain.Entry{Seq: 1, Tenant: "t", Kind: auditchain.KindLifecycle, ErasedBy: 2})
	want(t, erased, map[string]any{"activity_id": 99.0, "unmapped.erasedBy": 2.0})
}

// attribute returns the value of an OTLP attribute, or nil.
func attribute(record any, key string) any {
	list, _ := at(record, "attributes").([]any)
	for _, a := range list {
		if at(a, "key") == key {
			return at(a, "value")
		}
	}
	return nil
}

func TestEveryKindAsOTLP(t *testing.T) {
	t.Parallel()
	for _, kind := range auditchain.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			v := decoded(t, OTLP, entryOf(kind))
			if got := attribute(at(v, "resourceLogs.0.resource"), "service.instance.id"); at(got, "stringValue") != origin {
				t.Errorf("instance %v", got)
			}
			record := at(v, "resourceLogs.0.scopeLogs.0.logRecords.0")
			number, text := 9.0, "INFO"
			if rejected(kind) {
				number, text = 13.0, "WARN"
			}
			want(t, record, map[string]any{
				"timeUnixNano": "1790000000123000000", "observedTimeUnixNano": "1790000000123000000", // 64-bit integers are strings
				"severityNumber": number, "severityText": text, "eventName": string(kind),
				"body.kvlistValue.values.0.key": "event", "body.kvlistValue.values.0.value.stringValue": "e", "body.kvlistValue.values.1.value.intValue": "1",
			})
			for key, value := range map[string]string{
				"log.record.uid": origin + "/41", "agentd.tenant": "acme", "agentd.peer": "agent://b", "agentd.capability": "pay",
				"agentd.side": "response", "agentd.correlation": "c-1", "agentd.session": "s-1",
			} {
				if got := attribute(record, key); at(got, "stringValue") != value {
					t.Errorf("%s is %v, want %s", key, got, value)
				}
			}
			if got := attribute(record, "agentd.audit.seq"); at(got, "intValue") != "41" {
				t.Errorf("seq is %v", got)
			}
			if got := attribute(record, "agentd.audit.erased_by"); got != nil {
				t.Errorf("erased by %v", got)
			}
		})
	}
}

// A batch is one message, as a receiver accepts it in one request.
func TestOTLPBatchIsOneMessage(t *testing.T) {
	t.Parallel()
	first, second := entryOf(auditchain.KindRPCCall), entryOf(auditchain.KindApproval)
	second.Seq, second.Body, second.ErasedBy = 42, nil, 50
	text, err := OTLP.Append([]byte("before\n"), origin, []auditchain.Entry{first, second})
	if err != nil || strings.Count(string(text), "\n") != 2 || !strings.HasPrefix(string(text), "before\n{") {
		t.Fatalf("%q, %v", text, err)
	}
	var v any
	if err := json.Unmarshal(text[len("before\n"):], &v); err != nil {
		t.Fatal(err)
	}
	records := at(v, "resourceLogs.0.scopeLogs.0.logRecords")
	want(t, records, map[string]any{"0.eventName": "rpc_call", "1.eventName": "approval", "2": nil, "1.body.kvlistValue": nil})
	if got := attribute(at(records, "1"), "agentd.audit.erased_by"); at(got, "intValue") != "50" {
		t.Errorf("erased by %v", got)
	}
}

// A number goes into the OTLP type that holds it exactly, or into a string.
func TestOTLPNumbers(t *testing.T) {
	t.Parallel()
	for number, value := range map[string]string{
		"0": `{"intValue":"0"}`, "-1": `{"intValue":"-1"}`, "9223372036854775807": `{"intValue":"9223372036854775807"}`,
		"9223372036854775808": `{"stringValue":"9223372036854775808"}`, "-9223372036854775809": `{"stringValue":"-9223372036854775809"}`,
		"2.5": `{"doubleValue":2.5}`, "1e300": `{"doubleValue":1e+300}`, "1e400": `{"stringValue":"1e400"}`,
	} {
		e := entryOf(auditchain.KindRPCCall)
		e.Body = json.RawMessage(`{"x":` + number + `}`)
		if text := encode(t, OTLP, e); !strings.Contains(text, `{"key":"x","value":`+value+`}`) {
			t.Errorf("%s: %s", number, text)
		}
	}
	broken := entryOf(auditchain.KindRPCCall)
	broken.Body = json.RawMessage(`{"x":`)
	for _, format := range []Format{OTLP, JSONL, OCSF} {
		if text, err := format.Append(nil, origin, []auditchain.Entry{broken}); err == nil {
			t.Errorf("%s: a broken body became %s", format, text)
		}
	}
}

// parseCEF reads a line as ArcSight's guide describes it: header fields end at a
// pipe that is not escaped, and a value ends before the last space in front of the
// next key.
func parseCEF(t interface{ Fatalf(string, ...any) }, line string) (header []string, extension map[string]string) {
	var field strings.Builder
	for len(header) < 7 {
		if line == "" {
			t.Fatalf("a header of %d fields", len(header))
		}
		switch {
		case line[0] == '\\' && len(line) > 1:
			field.WriteByte(line[1])
			line = line[2:]
		case line[0] == '|':
			header = append(header, field.String())
			field.Reset()
			line = line[1:]
		default:
			field.WriteByte(line[0])
			line = line[1:]
		}
	}
	extension = map[string]string{}
	key, rest, _ := strings.Cut(line, "=")
	for {
		end, next := len(rest), ""
		for i := 0; i < len(rest); i++ {
			if rest[i] == '\\' {
				i++
			} else if rest[i] == '=' {
				end = strings.LastIndexByte(rest[:i], ' ')
				next = rest[end+1 : i]
				break
			}
		}
		if _, twice := extension[key]; twice {
			t.Fatalf("the key %q is there twice", key)
		}
		extension[key] = strings.NewReplacer(`\\`, `\`, `\=`, `=`, `\n`, "\n", `\r`, "\r").Replace(rest[:end])
		if next == "" {
			return header, extension
		}
		key, rest = next, rest[end+1+len(next)+1:]
	}
}

func TestEveryKindAsCEF(t *testing.T) {
	t.Parallel()
	for _, kind := range auditchain.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			header, extension := parseCEF(t, encode(t, CEF, entryOf(kind)))
			level := "3"
			if rejected(kind) {
				level = "6"
			}
			if got := strings.Join(header, "|"); got != "CEF:0|agentd|agentd|1|"+string(kind)+"|"+strings.ReplaceAll(string(kind), "_", " ")+"|"+level {
				t.Errorf("header %s", got)
			}
			for key, value := range map[string]string{
				"rt": "1790000000123", "externalId": origin + "/41", "cat": string(kind), "dhost": "agent://b", "request": "pay",
				"cs1": "acme", "cs1Label": "tenant", "cs2": "c-1", "cs2Label": "correlation", "cs3": "s-1", "cs3Label": "session",
				"cs4": "response", "cs4Label": "side", "cs5Label": "hash", "cn1": "41", "cn1Label": "seq", "msg": `{"event":"e","n":1}`,
			} {
				if extension[key] != value {
					t.Errorf("%s is %q, want %q", key, extension[key], value)
				}
			}
		})
	}
}

// A custom string without a value has no label either: a SIEM would show an empty
// column.
func TestCEFLeavesOutWhatIsAbsent(t *testing.T) {
	t.Parallel()
	_, extension := parseCEF(t, encode(t, CEF, auditchain.Entry{Seq: 1, Tenant: "t", Kind: auditchain.KindAuthCheck, ErasedBy: 2}))
	for _, key := range []string{"dhost", "request", "cs2", "cs2Label", "cs3", "cs3Label", "cs4", "cs4Label", "msg"} {
		if value, ok := extension[key]; ok {
			t.Errorf("%s=%q", key, value)
		}
	}
	if extension["cs1"] != "t" || extension["cn1"] != "1" {
		t.Errorf("%v", extension)
	}
}

// hostile is text that breaks a line, a field, a terminal or an encoding.
var hostile = []string{
	"a\nCEF:0|evil|x|1|y|z|10|", "a\r\nb", "a|b", `a\|b`, "a=b cs1=root", `a\=b`, `a\`, `\n`, "a\x00b", "\x1b[31mred\x1b[0m", "\x7f",
	"\u202egnp.exe", "\u2066isolate\u2069", "line\u2028separator\u2029", "\ufeffbom", `"quoted"`, "<script>", "' OR 1=1 --", "${jndi:ldap://x}", "é😀", " ", "a  b ",
}

// Whatever a caller put into a record, it stays inside its member: one line, and
// the same text for a parser of the format.
func TestHostileTextInEveryFormat(t *testing.T) {
	t.Parallel()
	for _, text := range hostile {
		body, err := json.Marshal(map[string]string{"event": text})
		if err != nil {
			t.Fatal(err)
		}
		e := entryOf(auditchain.KindRPCCall)
		e.Capability, e.Session, e.Body = text, text, body
		t.Run(fmt.Sprintf("%q", text), func(t *testing.T) {
			want(t, decoded(t, JSONL, e), map[string]any{"record.event": text, "agentd.seq": 41.0, "record.tenantId": "acme"})
			want(t, decoded(t, OCSF, e), map[string]any{"api.operation": text, "actor.session.uid": text, "unmapped.event": text, "class_uid": 6003.0})
			record := at(decoded(t, OTLP, e), "resourceLogs.0.scopeLogs.0.logRecords.0")
			want(t, record, map[string]any{"body.kvlistValue.values.0.value.stringValue": text})
			if got := attribute(record, "agentd.session"); at(got, "stringValue") != text {
				t.Errorf("OTLP session %v", got)
			}
			_, extension := parseCEF(t, encode(t, CEF, e))
			if extension["request"] != text || extension["cs3"] != text || extension["cs1"] != "acme" || extension["msg"] != string(body) {
				t.Errorf("CEF: %q", extension)
			}
		})
	}
}

// A CEF line is read back as what was written, whatever the values are.
func TestCEFRoundTrips(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("a= |\\\n\r\"n\u202e")), 1, 12, -1)
		e := entryOf(auditchain.KindRPCCall)
		e.Peer, e.Capability, e.Session, e.Tenant = text.Draw(t, "peer"), text.Draw(t, "capability"), text.Draw(t, "session"), text.Draw(t, "tenant")
		line, err := CEF.Append(nil, origin, []auditchain.Entry{e})
		if err != nil || strings.Count(string(line), "\n") != 1 || strings.Contains(string(line), "\r") || !utf8.Valid(line) {
			t.Fatalf("%q, %v", line, err)
		}
		header, extension := parseCEF(t, strings.TrimSuffix(string(line), "\n"))
		if len(header) != 7 || extension["dhost"] != e.Peer || extension["request"] != e.Capability || extension["cs3"] != e.Session || extension["cs1"] != e.Tenant {
			t.Fatalf("%q was read as %q, %q", line, header, extension)
		}
	})
}
