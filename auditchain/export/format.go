package export

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/agentd/agentd/auditchain"
)

// A Format is a way to write records. The set is closed.
type Format uint8

// The formats.
const (
	// JSONL is one JSON object per line: the record in the shape of its kind, and
	// its position in the log under "agentd".
	JSONL Format = iota + 1
	// OCSF is one Open Cybersecurity Schema Framework event per line.
	OCSF
	// OTLP is one OpenTelemetry logs message (OTLP/JSON) per line, each with a
	// batch of records.
	OTLP
	// CEF is one ArcSight Common Event Format line per record.
	CEF
)

//nolint:gochecknoglobals // a table of constants
var formatNames = [...]string{JSONL: "jsonl", OCSF: "ocsf", OTLP: "otlp", CEF: "cef"}

// Formats lists every format.
func Formats() []Format { return []Format{JSONL, OCSF, OTLP, CEF} }

// String returns the format's name, such as "jsonl".
func (f Format) String() string {
	if f == 0 || int(f) >= len(formatNames) {
		return fmt.Sprintf("format(%d)", uint8(f))
	}
	return formatNames[f]
}

// MarshalText returns the format's name.
func (f Format) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText parses a name as [Format.String] returns it.
func (f *Format) UnmarshalText(text []byte) error {
	for i, name := range formatNames {
		if i > 0 && name == string(text) {
			*f = Format(i)
			return nil
		}
	}
	return fmt.Errorf("export: unknown format %q: use jsonl, ocsf, otlp or cef", text)
}

// Append appends entries of the log called origin to dst, as whole lines.
func (f Format) Append(dst []byte, origin string, entries []auditchain.Entry) ([]byte, error) {
	if len(entries) == 0 {
		return dst, nil
	}
	if f == OTLP {
		return appendOTLP(dst, origin, entries)
	}
	for i := range entries {
		var err error
		switch e := &entries[i]; f {
		case JSONL:
			dst, err = appendJSONL(dst, origin, e)
		case OCSF:
			dst, err = appendOCSF(dst, origin, e)
		case CEF:
			dst = appendCEF(dst, origin, e)
		default:
			err = fmt.Errorf("export: there is no %s", f)
		}
		if err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// uid returns the globally unique name of a record.
func uid(origin string, e *auditchain.Entry) string {
	return origin + "/" + strconv.FormatInt(e.Seq, 10)
}

// appendLine appends v as one line of JSON.
func appendLine(dst []byte, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return dst, fmt.Errorf("export: %w", err)
	}
	return append(append(dst, text...), '\n'), nil
}

// appendJSONL appends the record next to its position, so that the two share no
// member names.
func appendJSONL(dst []byte, origin string, e *auditchain.Entry) ([]byte, error) {
	record, err := e.MarshalJSON()
	if err != nil {
		return dst, fmt.Errorf("export: %w", err)
	}
	return appendLine(dst, struct {
		Agentd place           `json:"agentd"`
		Record json.RawMessage `json:"record"`
	}{place{UID: uid(origin, e), Origin: origin, Seq: e.Seq, Hash: e.Hash.String()}, record})
}

// A place is the position of a record.
type place struct {
	UID    string `json:"uid"`
	Origin string `json:"origin"`
	Seq    int64  `json:"seq"`
	Hash   string `json:"hash"`
}

// A severity is the urgency of a kind of record.
type severity uint8

const (
	informational severity = iota
	medium
)

// severityOf rates rejected calls and broken schemas above successes.
func severityOf(kind auditchain.Kind) severity {
	switch kind {
	case auditchain.KindSchemaViolation, auditchain.KindPermissionDenied, auditchain.KindRateLimited,
		auditchain.KindValidationExceeded, auditchain.KindSchemaDrift:
		return medium
	}
	return informational
}
