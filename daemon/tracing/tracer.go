package tracing

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/agentd/agentd/internal/otlp"
	"github.com/agentd/agentd/rpc/span"
)

// closeTimeout bounds how long the end of an agent waits for a collector.
const closeTimeout = 2 * time.Second

// A Tracer samples traces and sends their spans. It is a [span.Tracer].
type Tracer struct {
	sampler Sampler
	limit   *peerLimit // nil where there is none
	queue   *otlp.Queue[*span.Span]
	client  *otlp.Client
}

var (
	_ span.Tracer  = (*Tracer)(nil)
	_ span.Limiter = (*Tracer)(nil)
)

// New starts a tracer. tell is called when the collector has gone or is back, and when spans
// were lost; limited when a peer has more traces recorded than it may, each minute while that
// goes on, and when it is over.
func New(cfg Config, tell func(otlp.State), limited func(Limited)) *Tracer {
	t := &Tracer{sampler: cfg.Sampler, client: otlp.NewClient(cfg.To)}
	if cfg.PeerLimit > 0 && !cfg.Sampler.Everywhere { // which asks nobody else
		t.limit = newPeerLimit(cfg.PeerLimit, limited)
	}
	resource := otlp.ResourceOf(cfg.Resource)
	t.queue = otlp.NewQueue(t.client, cfg.Batch, func(batch []*span.Span) ([]byte, error) {
		all := make([]*tracepb.Span, 0, len(batch))
		for _, s := range batch {
			out, err := encode(s)
			if err != nil {
				return nil, err
			}
			all = append(all, out)
		}
		// On the wire it is the ExportTraceServiceRequest, whose package needs grpc-go.
		return proto.Marshal(&tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{
			Resource:   resource,
			ScopeSpans: []*tracepb.ScopeSpans{{Scope: &commonpb.InstrumentationScope{Name: otlp.Scope}, Spans: all}},
		}}})
	}, tell)
	t.queue.Share(func(s *span.Span) string { return s.Account })
	return t
}

// Dropped returns how many spans never arrived.
func (t *Tracer) Dropped() otlp.Dropped { return t.queue.Dropped() }

// Endpoint names the collector.
func (t *Tracer) Endpoint() string { return t.client.Endpoint() }

// Begin implements [span.Tracer].
func (t *Tracer) Begin(parent string) string { return t.sampler.begin(parent) }

// Admit implements [span.Limiter].
func (t *Tracer) Admit(peer string) bool { return t.limit == nil || t.limit.admit(peer) }

// End implements [span.Tracer].
func (t *Tracer) End(s *span.Span) {
	shorten(s)
	t.queue.Emit(s)
}

// maxText bounds a text of a span, in bytes. Names and ids are far shorter.
const maxText = 1 << 10

// shorten bounds what a span holds while it waits: a header and an id that strangers send may be
// as long as a message, and there is room for thousands of spans.
func shorten(s *span.Span) {
	const traceparent = 55
	switch {
	case len(s.Parent) <= traceparent:
	case !span.Valid(s.Parent):
		s.Parent = ""
	default: // of a later version: what comes after is not sent
		s.Parent = strings.Clone(s.Parent[:traceparent])
	}
	for i := range s.Attributes {
		if a := &s.Attributes[i]; len(a.Text) > maxText {
			a.Text = strings.Clone(a.Text[:maxText])
		}
	}
}

// Close sends what is left, within two seconds, and before ctx ends.
func (t *Tracer) Close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	if t.limit != nil {
		t.limit.close()
	}
	t.queue.Close(ctx)
}

// encode is a span in the form of OTLP.
func encode(s *span.Span) (*tracepb.Span, error) {
	out := &tracepb.Span{
		// What is no UTF-8 cannot be encoded: one such name would lose the whole batch.
		Name: strings.ToValidUTF8(s.Name, "\uFFFD"), Kind: tracepb.Span_SpanKind(s.Kind), TraceState: s.State,
		StartTimeUnixNano: unixNano(s.Start), EndTimeUnixNano: max(unixNano(s.End), unixNano(s.Start)),
		Attributes: attributes(s.Attributes), Status: &tracepb.Status{},
	}
	traceID, own := span.IDs(s.Traceparent)
	_, parent := span.IDs(s.Parent)
	var err error
	for _, id := range []struct {
		text string
		to   *[]byte
	}{{traceID, &out.TraceId}, {own, &out.SpanId}, {parent, &out.ParentSpanId}} {
		if *id.to, err = hex.DecodeString(id.text); err != nil {
			return nil, fmt.Errorf("tracing: %w", err)
		}
	}
	const recorded, hasRemote = 1, 0x100 // the flags of W3C, and that of OTLP
	out.Flags = recorded
	if parent != "" {
		// Of a call's parent it is not known: it may be this agent's, its skill's or a client's.
		switch s.Kind {
		case span.Server, span.Consumer:
			out.Flags |= hasRemote | hasRemote<<1 // it is in another process
		case span.Internal, span.Producer:
			out.Flags |= hasRemote
		}
	}
	if s.Failure != "" {
		// A code, and no text: what errors say may be a payload's.
		out.Status.Code = tracepb.Status_STATUS_CODE_ERROR
		out.Attributes = append(out.Attributes, text(span.ErrorType, s.Failure))
	}
	for _, e := range s.Events {
		out.Events = append(out.Events, &tracepb.Span_Event{Name: e.Name, TimeUnixNano: unixNano(e.Time), Attributes: attributes(e.Attributes)})
	}
	return out, nil
}

func attributes(all []span.Attribute) []*commonpb.KeyValue {
	out := make([]*commonpb.KeyValue, 0, len(all)+1)
	for _, a := range all {
		if a.IsNumber {
			out = append(out, &commonpb.KeyValue{Key: a.Key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: a.Number}}})
			continue
		}
		out = append(out, text(a.Key, a.Text))
	}
	return out
}

func text(key, value string) *commonpb.KeyValue { return otlp.Text(key, value) }

// unixNano is a time in the form of OTLP; one that is not set, or before 1970, is 0.
func unixNano(t time.Time) uint64 {
	if t.IsZero() || t.UnixNano() < 0 {
		return 0
	}
	return uint64(t.UnixNano())
}
