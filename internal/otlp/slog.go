package otlp

import (
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/protobuf/proto"
)

// A LogHandler sends lines of the log to a collector. It is a [slog.Handler], safe for
// concurrent use.
type LogHandler struct {
	queue  *Queue[*logspb.LogRecord]
	level  slog.Leveler
	prefix string // of the keys of a group, with its dot
	attrs  []*commonpb.KeyValue
	trace  []byte // of a logger for one call, as span is
	span   []byte
}

var _ slog.Handler = (*LogHandler)(nil)

// NewLogHandler starts to send lines of a level and above. tell is called as by [NewQueue];
// what it logs must not come back here.
func NewLogHandler(cfg Config, b Batch, resource map[string]string, level slog.Leveler, tell func(State)) *LogHandler {
	about := ResourceOf(resource)
	return &LogHandler{level: level, queue: NewQueue(NewClient(cfg), b, func(batch []*logspb.LogRecord) ([]byte, error) {
		// On the wire it is the ExportLogsServiceRequest, whose package needs grpc-go.
		return proto.Marshal(&logspb.LogsData{ResourceLogs: []*logspb.ResourceLogs{{
			Resource: about, ScopeLogs: []*logspb.ScopeLogs{{Scope: &commonpb.InstrumentationScope{Name: Scope}, LogRecords: batch}},
		}}})
	}, tell)}
}

// Close sends what is left, until ctx ends.
func (h *LogHandler) Close(ctx context.Context) { h.queue.Close(ctx) }

// Dropped returns how many lines never arrived.
func (h *LogHandler) Dropped() Dropped { return h.queue.Dropped() }

// Enabled implements [slog.Handler].
func (h *LogHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= h.level.Level()
}

// Handle implements [slog.Handler].
func (h *LogHandler) Handle(_ context.Context, r slog.Record) error {
	out := &logspb.LogRecord{
		TimeUnixNano: nano(r.Time), ObservedTimeUnixNano: nano(r.Time), SeverityNumber: severity(r.Level), SeverityText: r.Level.String(),
		Body: TextValue(r.Message), Attributes: slices.Clip(h.attrs), TraceId: h.trace, SpanId: h.span,
	}
	r.Attrs(func(a slog.Attr) bool {
		noteIDs(a, &out.TraceId, &out.SpanId)
		out.Attributes = appendAttr(out.Attributes, h.prefix, a)
		return true
	})
	h.queue.Emit(out)
	return nil
}

// WithAttrs implements [slog.Handler].
func (h *LogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	next.attrs = slices.Clip(h.attrs)
	for _, a := range attrs {
		noteIDs(a, &next.trace, &next.span)
		next.attrs = appendAttr(next.attrs, h.prefix, a)
	}
	return &next
}

// WithGroup implements [slog.Handler].
func (h *LogHandler) WithGroup(name string) slog.Handler {
	next := *h
	if name != "" {
		next.prefix += name + "."
	}
	return &next
}

// noteIDs notes the ids of the trace and of the span that an attribute names. What is no id is
// an attribute like any other.
func noteIDs(a slog.Attr, traceID, spanID *[]byte) {
	const traceBytes, spanBytes = 16, 8
	switch a.Key {
	case "traceId":
		noteID(a, traceID, traceBytes)
	case "spanId":
		noteID(a, spanID, spanBytes)
	}
}

func noteID(a slog.Attr, to *[]byte, size int) {
	if id, err := hex.DecodeString(a.Value.String()); err == nil && len(id) == size {
		*to = id
	}
}

func appendAttr(all []*commonpb.KeyValue, prefix string, a slog.Attr) []*commonpb.KeyValue {
	value := a.Value.Resolve()
	switch value.Kind() {
	case slog.KindGroup:
		if a.Key != "" {
			prefix += a.Key + "."
		}
		for _, member := range value.Group() {
			all = appendAttr(all, prefix, member)
		}
		return all
	case slog.KindInt64:
		return append(all, &commonpb.KeyValue{Key: prefix + a.Key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: value.Int64()}}})
	case slog.KindFloat64:
		return append(all, &commonpb.KeyValue{Key: prefix + a.Key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: value.Float64()}}})
	case slog.KindBool:
		return append(all, &commonpb.KeyValue{Key: prefix + a.Key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: value.Bool()}}})
	}
	if a.Key == "" {
		return all
	}
	return append(all, Text(prefix+a.Key, fmt.Sprint(value.Any())))
}

// severity is a level in the numbers of OTLP.
func severity(l slog.Level) logspb.SeverityNumber {
	switch {
	case l < slog.LevelInfo:
		return logspb.SeverityNumber_SEVERITY_NUMBER_DEBUG
	case l < slog.LevelWarn:
		return logspb.SeverityNumber_SEVERITY_NUMBER_INFO
	case l < slog.LevelError:
		return logspb.SeverityNumber_SEVERITY_NUMBER_WARN
	}
	return logspb.SeverityNumber_SEVERITY_NUMBER_ERROR
}

func nano(t time.Time) uint64 {
	if t.IsZero() || t.UnixNano() < 0 {
		return 0
	}
	return uint64(t.UnixNano())
}
