package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/agentd/agentd/auditchain"
)

// The OTLP/JSON encoding of logs (opentelemetry.io/docs/specs/otlp): 64-bit
// integers are strings, enumerations are numbers.
type (
	otlpLogs struct {
		ResourceLogs []otlpResourceLogs `json:"resourceLogs"`
	}
	otlpResourceLogs struct {
		Resource  otlpResource    `json:"resource"`
		ScopeLogs []otlpScopeLogs `json:"scopeLogs"`
	}
	otlpResource struct {
		Attributes []otlpAttribute `json:"attributes"`
	}
	otlpScopeLogs struct {
		Scope      otlpScope    `json:"scope"`
		LogRecords []otlpRecord `json:"logRecords"`
	}
	otlpScope struct {
		Name string `json:"name"`
	}
	otlpRecord struct {
		TimeUnixNano   string          `json:"timeUnixNano"`
		ObservedNano   string          `json:"observedTimeUnixNano"`
		SeverityNumber int             `json:"severityNumber"`
		SeverityText   string          `json:"severityText"`
		EventName      string          `json:"eventName"`
		Body           otlpValue       `json:"body"`
		Attributes     []otlpAttribute `json:"attributes"`
	}
	otlpAttribute struct {
		Key   string    `json:"key"`
		Value otlpValue `json:"value"`
	}
	// otlpValue is an AnyValue. At most one field is set; none is null.
	otlpValue struct {
		String *string    `json:"stringValue,omitempty"`
		Bool   *bool      `json:"boolValue,omitempty"`
		Int    *string    `json:"intValue,omitempty"`
		Double *float64   `json:"doubleValue,omitempty"`
		Array  *otlpArray `json:"arrayValue,omitempty"`
		Object *otlpList  `json:"kvlistValue,omitempty"`
	}
	otlpArray struct {
		Values []otlpValue `json:"values"`
	}
	otlpList struct {
		Values []otlpAttribute `json:"values"`
	}
)

// Severity numbers of the OpenTelemetry log data model.
const (
	otlpInfo = 9
	otlpWarn = 13
)

// appendOTLP appends one message, as an OTLP/HTTP receiver accepts it as a body.
func appendOTLP(dst []byte, origin string, entries []auditchain.Entry) ([]byte, error) {
	records := make([]otlpRecord, 0, len(entries))
	for i := range entries {
		record, err := otlpOf(origin, &entries[i])
		if err != nil {
			return dst, err
		}
		records = append(records, record)
	}
	return appendLine(dst, otlpLogs{[]otlpResourceLogs{{
		Resource: otlpResource{[]otlpAttribute{
			{"service.name", stringValue("agentd")}, {"service.instance.id", stringValue(origin)},
		}},
		ScopeLogs: []otlpScopeLogs{{Scope: otlpScope{"github.com/agentd/agentd/auditchain"}, LogRecords: records}},
	}}})
}

// otlpOf maps one record.
func otlpOf(origin string, e *auditchain.Entry) (otlpRecord, error) {
	nano := strconv.FormatInt(e.Time.UnixNano(), 10)
	r := otlpRecord{
		TimeUnixNano: nano, ObservedNano: nano, SeverityNumber: otlpInfo, SeverityText: "INFO", EventName: string(e.Kind),
		Attributes: []otlpAttribute{
			{"log.record.uid", stringValue(uid(origin, e))}, {"agentd.audit.seq", intValue(e.Seq)},
			{"agentd.audit.hash", stringValue(e.Hash.String())}, {"agentd.tenant", stringValue(e.Tenant)},
		},
	}
	if severityOf(e.Kind) == medium {
		r.SeverityNumber, r.SeverityText = otlpWarn, "WARN"
	}
	for _, a := range []struct{ key, value string }{
		{"agentd.peer", e.Peer}, {"agentd.capability", e.Capability}, {"agentd.side", string(e.Side)},
		{"agentd.correlation", e.Correlation}, {"agentd.session", e.Session},
	} {
		if a.value != "" {
			r.Attributes = append(r.Attributes, otlpAttribute{a.key, stringValue(a.value)})
		}
	}
	if e.Erased() {
		r.Attributes = append(r.Attributes, otlpAttribute{"agentd.audit.erased_by", intValue(e.ErasedBy)})
		return r, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(e.Body))
	decoder.UseNumber()
	var body any
	if err := decoder.Decode(&body); err != nil {
		return r, fmt.Errorf("export: record %d: %w", e.Seq, err)
	}
	r.Body = valueOf(body)
	return r, nil
}

func stringValue(s string) otlpValue { return otlpValue{String: &s} }

func intValue(n int64) otlpValue {
	s := strconv.FormatInt(n, 10)
	return otlpValue{Int: &s}
}

// valueOf maps decoded JSON. A number that neither an int64 nor a double can hold
// becomes a string.
func valueOf(v any) otlpValue {
	switch v := v.(type) {
	case string:
		return stringValue(v)
	case bool:
		return otlpValue{Bool: &v}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return intValue(n)
		}
		if f, err := v.Float64(); err == nil && strings.ContainsAny(v.String(), ".eE") {
			return otlpValue{Double: &f}
		}
		return stringValue(v.String())
	case []any:
		array := otlpArray{make([]otlpValue, len(v))}
		for i := range v {
			array.Values[i] = valueOf(v[i])
		}
		return otlpValue{Array: &array}
	case map[string]any:
		list := otlpList{make([]otlpAttribute, 0, len(v))}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			list.Values = append(list.Values, otlpAttribute{key, valueOf(v[key])})
		}
		return otlpValue{Object: &list}
	}
	return otlpValue{}
}
