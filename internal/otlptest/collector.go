package otlptest

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// A Collector takes what is sent to it. It is safe for concurrent use.
type Collector struct {
	// URL is its address, for both protocols.
	URL string

	server *http.Server
	served sync.WaitGroup

	mu      sync.Mutex
	spans   []Span        // guarded by mu
	logs    []Log         // guarded by mu
	headers []http.Header // of the requests; guarded by mu
	answer  Answer        // guarded by mu
	hold    chan struct{} // nil unless requests are to hang; guarded by mu
}

// An Answer is how requests are answered instead of being taken. The zero value takes them.
type Answer struct {
	// Status is that of HTTP, and Code that of gRPC.
	Status, Code int
	// RetryAfter is the header, and by gRPC the seconds of a RetryInfo.
	RetryAfter string
	// Rejected is how many of each request are not taken, and Why.
	Rejected int
	Why      string
}

// A Span is one that was taken.
type Span struct {
	Service, Name, TraceID, ID, Parent, Kind, State string
	// Failed says that its status is an error.
	Failed     bool
	Attributes map[string]string
	Events     []string
	Raw        *tracepb.Span
}

// A Log is a log record that was taken.
type Log struct {
	Service, Body, TraceID, SpanID, Severity, Event string
	Attributes                                      map[string]string
}

// New starts a collector, which listens until Close.
func New() (*Collector, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return Serve(listener), nil
}

// Serve starts a collector on a listener.
func Serve(listener net.Listener) *Collector {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	c := &Collector{URL: "http://" + listener.Addr().String()}
	c.server = &http.Server{Handler: c, Protocols: &protocols} //nolint:gosec // a test's own requests
	c.served.Go(func() { _ = c.server.Serve(listener) })
	return c
}

// Close stops it, with the requests that hang.
func (c *Collector) Close() {
	c.Release()
	_ = c.server.Close()
	c.served.Wait()
}

// Respond sets how requests are answered from now on.
func (c *Collector) Respond(a Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = a
}

// Hang has requests wait until Release, or until their clients give up.
func (c *Collector) Hang() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hold = make(chan struct{})
}

// Release ends Hang.
func (c *Collector) Release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hold != nil {
		close(c.hold)
		c.hold = nil
	}
}

// Spans returns those of a trace, or all of them for "", in the order of their beginnings.
func (c *Collector) Spans(trace string) []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.DeleteFunc(slices.Clone(c.spans), func(s Span) bool { return trace != "" && s.TraceID != trace })
	slices.SortStableFunc(all, func(a, b Span) int {
		return int(int64(a.Raw.StartTimeUnixNano) - int64(b.Raw.StartTimeUnixNano)) //nolint:gosec // times
	})
	return all
}

// Logs returns the log records.
func (c *Collector) Logs() []Log {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.logs)
}

// Headers returns those of the requests that were made.
func (c *Collector) Headers() []http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.headers)
}

// ServeHTTP implements [http.Handler].
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	answer, hold := c.answer, c.hold
	c.headers = append(c.headers, r.Header.Clone())
	c.mu.Unlock()
	grpc := strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc")
	message, err := body(r, grpc)
	if hold != nil {
		select {
		case <-hold:
		case <-r.Context().Done():
			return
		}
	}
	if err == nil && answer.Status == 0 && answer.Code == 0 {
		err = c.take(r.URL.Path, message)
	}
	if err != nil {
		answer = Answer{Status: http.StatusBadRequest, Code: 3, Why: err.Error()}
	}
	if grpc {
		writeGRPC(w, answer)
		return
	}
	if answer.RetryAfter != "" {
		w.Header().Set("Retry-After", answer.RetryAfter)
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	if answer.Status != 0 {
		w.WriteHeader(answer.Status)
		return
	}
	_, _ = w.Write(answer.message())
}

// body reads the message of a request.
func body(r *http.Request, grpc bool) ([]byte, error) {
	data, err := io.ReadAll(r.Body)
	zipped := r.Header.Get("Content-Encoding") == "gzip"
	if err == nil && grpc {
		const frame = 5
		if len(data) < frame || int(binary.BigEndian.Uint32(data[1:frame])) != len(data)-frame {
			return nil, fmt.Errorf("not one gRPC message: %d bytes", len(data))
		}
		zipped, data = data[0] == 1, data[frame:]
	}
	if err != nil || !zipped {
		return data, err
	}
	unzip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(unzip)
}

// message is the answer to a request of either signal.
func (a Answer) message() []byte {
	if a.Rejected == 0 {
		return nil
	}
	var part []byte
	// Both are less than 128, so that their varints are a byte each.
	part = append(part, 0x08, byte(a.Rejected))                   //nolint:gosec // see above
	part = append(append(part, 0x12, byte(len(a.Why))), a.Why...) //nolint:gosec // see above
	return append([]byte{0x0a, byte(len(part))}, part...)         //nolint:gosec // see above
}

func writeGRPC(w http.ResponseWriter, a Answer) {
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Trailer", "Grpc-Status, Grpc-Message, Grpc-Status-Details-Bin")
	w.WriteHeader(http.StatusOK)
	if a.Code == 0 {
		message := a.message()
		frame := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))) //nolint:gosec // a few bytes
		_, _ = w.Write(append(frame, message...))
	}
	w.Header().Set("Grpc-Status", fmt.Sprint(a.Code))
	w.Header().Set("Grpc-Message", a.Why)
	if seconds, err := strconv.Atoi(a.RetryAfter); err == nil {
		w.Header().Set("Grpc-Status-Details-Bin", base64.RawStdEncoding.EncodeToString(retryInfo(seconds)))
	}
}

// retryInfo is a google.rpc.Status with a google.rpc.RetryInfo in its details.
func retryInfo(seconds int) []byte {
	delay := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(seconds)) //nolint:gosec // a test's own
	info := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), delay)
	detail := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "type.googleapis.com/google.rpc.RetryInfo")
	detail = protowire.AppendBytes(protowire.AppendTag(detail, 2, protowire.BytesType), info)
	return protowire.AppendBytes(protowire.AppendTag(nil, 3, protowire.BytesType), detail)
}

// take keeps what a request has.
func (c *Collector) take(path string, message []byte) error {
	switch path {
	case "/v1/traces", "/opentelemetry.proto.collector.trace.v1.TraceService/Export":
		var data tracepb.TracesData
		if err := proto.Unmarshal(message, &data); err != nil {
			return err
		}
		c.takeSpans(&data)
	case "/v1/logs", "/opentelemetry.proto.collector.logs.v1.LogsService/Export":
		var data logspb.LogsData
		if err := proto.Unmarshal(message, &data); err != nil {
			return err
		}
		c.takeLogs(&data)
	default:
		return fmt.Errorf("no signal is taken at %s", path)
	}
	return nil
}

func (c *Collector) takeSpans(data *tracepb.TracesData) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range data.ResourceSpans {
		for _, scope := range of.ScopeSpans {
			for _, s := range scope.Spans {
				taken := Span{
					Service: service(of.Resource), Name: s.Name, TraceID: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId),
					Parent: hex.EncodeToString(s.ParentSpanId), Kind: strings.TrimPrefix(s.Kind.String(), "SPAN_KIND_"), State: s.TraceState,
					Failed: s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR, Attributes: attributes(s.Attributes), Raw: s,
				}
				for _, e := range s.Events {
					taken.Events = append(taken.Events, e.Name)
				}
				c.spans = append(c.spans, taken)
			}
		}
	}
}

func (c *Collector) takeLogs(data *logspb.LogsData) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range data.ResourceLogs {
		for _, scope := range of.ScopeLogs {
			for _, l := range scope.LogRecords {
				c.logs = append(c.logs, Log{
					Service: service(of.Resource), Body: text(l.Body), TraceID: hex.EncodeToString(l.TraceId), SpanID: hex.EncodeToString(l.SpanId),
					Severity: l.SeverityText, Event: l.EventName, Attributes: attributes(l.Attributes),
				})
			}
		}
	}
}

func service(r *resourcepb.Resource) string { return attributes(r.GetAttributes())["service.name"] }

func attributes(all []*commonpb.KeyValue) map[string]string {
	out := map[string]string{}
	for _, a := range all {
		out[a.Key] = text(a.Value)
	}
	return out
}

// text is a value as text; one that is no text is in protobuf's own form.
func text(v *commonpb.AnyValue) string {
	switch v := v.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		return v.StringValue
	case *commonpb.AnyValue_IntValue:
		return fmt.Sprint(v.IntValue)
	case *commonpb.AnyValue_DoubleValue:
		return fmt.Sprint(v.DoubleValue)
	case *commonpb.AnyValue_BoolValue:
		return fmt.Sprint(v.BoolValue)
	case nil:
		return ""
	}
	return v.String()
}

// Tree writes a trace as one line a span, indented below its parent, in the order of their
// beginnings: the service, the kind, the name, its error, and the attributes with the given
// keys. A span whose parent was not sent is a root.
func Tree(spans []Span, keys ...string) string {
	known := map[string]bool{}
	for _, s := range spans {
		known[s.ID] = true
	}
	var out strings.Builder
	var write func(parent string, depth int)
	write = func(parent string, depth int) {
		for _, s := range spans {
			if s.Parent != parent && (parent != "" || known[s.Parent]) {
				continue
			}
			fmt.Fprintf(&out, "%s%s %s %q", strings.Repeat("  ", depth), s.Service, s.Kind, s.Name)
			if s.Failed {
				out.WriteString(" failed " + s.Attributes["error.type"])
			}
			for _, key := range keys {
				if v, ok := s.Attributes[key]; ok {
					out.WriteString(" " + key + "=" + v)
				}
			}
			out.WriteString("\n")
			write(s.ID, depth+1)
		}
	}
	write("", 0)
	return out.String()
}
