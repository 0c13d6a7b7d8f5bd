package otlp

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/agentd/agentd/internal/truncate"
)

// maxAnswer bounds what is read of an answer, and maxReason what is shown of it.
const (
	maxAnswer = 64 << 10
	maxReason = 256
)

// An Error is a request that a collector did not take.
type Error struct {
	// Retryable says that the same request may be taken later.
	Retryable bool
	// After is how long the collector wants to be left alone, at most half a minute, or 0.
	After time.Duration
	// Reason is why, with no more of the collector's words than a line.
	Reason string
	// Err is the cause, or nil.
	Err error
}

func (e *Error) Error() string { return e.Reason }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// A Refusal is what a collector did not take of a request that it took.
type Refusal struct {
	// Count is the number of spans or records.
	Count int64
	// Reason is the collector's.
	Reason string
}

// A Client sends requests to one collector. It is safe for concurrent use.
type Client struct {
	cfg       Config
	transport *http.Transport
	http      *http.Client
	target    string
}

// NewClient returns a client. It connects with the first request.
func NewClient(cfg Config) *Client {
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.Protocol == "" {
		cfg.Protocol = HTTP
	}
	c := &Client{cfg: cfg, target: cfg.Endpoint.String()}
	var protocols http.Protocols
	protocols.SetHTTP1(cfg.Protocol == HTTP)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(cfg.Protocol == GRPC)
	c.transport = &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: cfg.TLS, Protocols: &protocols, ForceAttemptHTTP2: true,
		MaxIdleConns: 1, MaxConnsPerHost: 2, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: cfg.Timeout, MaxResponseHeaderBytes: maxAnswer,
	}
	// The headers may be secret: they go to nobody else.
	c.http = &http.Client{Transport: c.transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if cfg.Protocol == GRPC {
		c.target = (&url.URL{Scheme: cfg.Endpoint.Scheme, Host: cfg.Endpoint.Host, Path: "/" + cfg.Signal.method()}).String()
	}
	return c
}

// Close closes idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Endpoint is [Config.Where].
func (c *Client) Endpoint() string { return c.cfg.Where() }

// Send makes one request with the encoded message of the signal. The error is an [*Error],
// and the refusal is not nil where the collector has taken a part.
func (c *Client) Send(ctx context.Context, message []byte) (*Refusal, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	req, err := c.request(ctx, message)
	if err != nil {
		return nil, &Error{Reason: "the request cannot be made", Err: err}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, unreachable(err)
	}
	defer func() { _ = resp.Body.Close() }() // it was read, or is given up
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, unreachable(err)
	}
	if c.cfg.Protocol == GRPC {
		return grpcAnswer(resp, body)
	}
	return httpAnswer(resp, body)
}

// request makes the request.
func (c *Client) request(ctx context.Context, message []byte) (*http.Request, error) {
	if c.cfg.Gzip {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write(message) // into memory
		_ = w.Close()
		message = b.Bytes()
	}
	if c.cfg.Protocol == GRPC {
		frame := make([]byte, 5, 5+len(message))
		if c.cfg.Gzip {
			frame[0] = 1
		}
		binary.BigEndian.PutUint32(frame[1:], uint32(len(message))) //nolint:gosec // a batch has a bound far below
		message = append(frame, message...)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.target, bytes.NewReader(message))
	if err != nil {
		return nil, err
	}
	for name, value := range c.cfg.Header {
		req.Header.Set(name, value)
	}
	req.Header.Set("User-Agent", "agentd-otlp")
	switch c.cfg.Protocol {
	case HTTP:
		req.Header.Set("Content-Type", "application/x-protobuf")
		if c.cfg.Gzip {
			req.Header.Set("Content-Encoding", "gzip")
		}
	default:
		req.Header.Set("Content-Type", "application/grpc+proto")
		req.Header.Set("Te", "trailers")
		if c.cfg.Gzip {
			req.Header.Set("Grpc-Encoding", "gzip")
		}
	}
	return req, nil
}

// unreachable is the error of a request without an answer.
func unreachable(err error) *Error {
	// The URL is in the log's line already, and may have a password.
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return &Error{Retryable: true, Reason: "the collector cannot be reached: " + truncate.String(err.Error(), maxReason), Err: err}
}

// httpAnswer judges an answer by the rules of OTLP/HTTP.
func httpAnswer(resp *http.Response, body []byte) (*Refusal, error) {
	if resp.StatusCode/100 == 2 {
		return partial(body), nil
	}
	e := &Error{Reason: fmt.Sprintf("the collector answers with the status %d", resp.StatusCode), After: retryAfter(resp.Header)}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		e.Retryable = true
	}
	const statusMessage = 2 // of google.rpc.Status
	if why := field(body, statusMessage); resp.Header.Get("Content-Type") == "application/x-protobuf" && len(why) > 0 {
		e.Reason += ": " + oneLine(string(why))
	}
	return nil, e
}

// grpcAnswer judges an answer by the rules of gRPC. The status is in the trailer, or in the
// header of an answer without a body.
func grpcAnswer(resp *http.Response, body []byte) (*Refusal, error) {
	status := resp.Trailer.Get("Grpc-Status")
	why := resp.Trailer.Get("Grpc-Message")
	if status == "" {
		status, why = resp.Header.Get("Grpc-Status"), resp.Header.Get("Grpc-Message")
	}
	switch {
	case resp.StatusCode != http.StatusOK || status == "":
		busy := resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode/100 == 5
		return nil, &Error{Reason: fmt.Sprintf("what answers is no gRPC server: HTTP status %d", resp.StatusCode), Retryable: busy, After: retryAfter(resp.Header)}
	case status == "0":
		const frame = 5
		if len(body) > frame {
			return partial(body[frame:]), nil
		}
		return nil, nil
	}
	code, _ := strconv.Atoi(status)
	e := &Error{Reason: "the collector answers with the gRPC status " + oneLine(status)}
	if text, err := url.PathUnescape(why); err == nil && text != "" {
		e.Reason += ": " + oneLine(text)
	}
	// RESOURCE_EXHAUSTED passes only where the collector says when, by the specification: it
	// is also the answer to a message that is too long, which another attempt does not make
	// shorter.
	const canceled, deadline, exhausted, aborted, outOfRange, unavailable, dataLoss = 1, 4, 8, 10, 11, 14, 15
	after, told := retryInfo(cmp.Or(resp.Trailer.Get("Grpc-Status-Details-Bin"), resp.Header.Get("Grpc-Status-Details-Bin")))
	switch code {
	case canceled, deadline, aborted, outOfRange, unavailable, dataLoss:
		e.Retryable, e.After = true, after
	case exhausted:
		e.Retryable, e.After = told, after
	}
	return nil, e
}

// retryInfo reads google.rpc.RetryInfo from the details of a gRPC status: how long the
// collector wants to be left alone. told is false where it does not say.
func retryInfo(details string) (after time.Duration, told bool) {
	const kind = "type.googleapis.com/google.rpc.RetryInfo"
	// google.rpc.Status.details, google.protobuf.Any and RetryInfo.retry_delay.
	const inStatus, inType, inValue, inDelay = 3, 1, 2, 1
	status, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(details, "="))
	if err != nil {
		return 0, false
	}
	for any := range fields(status, inStatus) {
		if string(field(any, inType)) != kind {
			continue
		}
		var delay durationpb.Duration
		if err := proto.Unmarshal(field(field(any, inValue), inDelay), &delay); err != nil {
			return 0, false
		}
		return min(max(delay.AsDuration(), 0), maxPause), true
	}
	return 0, false
}

// partial is what a collector did not take, from the answer to either signal: partial_success,
// with a count and a reason.
func partial(body []byte) *Refusal {
	const success, rejected, reason = 1, 1, 2
	part := field(body, success)
	if part == nil {
		return nil
	}
	r := &Refusal{Reason: oneLine(string(field(part, reason)))}
	for rest := part; len(rest) > 0; {
		number, kind, n := protowire.ConsumeTag(rest)
		if n < 0 {
			break
		}
		if number == rejected && kind == protowire.VarintType {
			if v, m := protowire.ConsumeVarint(rest[n:]); m > 0 {
				r.Count = int64(v) //nolint:gosec // a negative count is none
			}
		}
		m := protowire.ConsumeFieldValue(number, kind, rest[n:])
		if m < 0 {
			break
		}
		rest = rest[n+m:]
	}
	if r.Count <= 0 {
		return nil // a warning about a request that was taken whole
	}
	return r
}

// field returns the bytes of the first field of a message with a number, or nil.
func field(message []byte, want protowire.Number) []byte {
	for value := range fields(message, want) {
		return value
	}
	return nil
}

// fields are the bytes of the fields of a message with a number, as far as it can be read.
func fields(message []byte, want protowire.Number) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(message) > 0 {
			number, kind, n := protowire.ConsumeTag(message)
			if n < 0 {
				return
			}
			m := protowire.ConsumeFieldValue(number, kind, message[n:])
			if m < 0 {
				return
			}
			if number == want && kind == protowire.BytesType {
				value, _ := protowire.ConsumeBytes(message[n:])
				if !yield(value) {
					return
				}
			}
			message = message[n+m:]
		}
	}
}

// retryAfter is the header of that name, seconds or a date, within reason: a collector cannot
// have spans wait for longer than [maxPause].
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil {
		return min(time.Duration(max(seconds, 0))*time.Second, maxPause)
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(time.Until(at), 0), maxPause)
	}
	return 0
}

// oneLine is what is shown of the collector's words.
func oneLine(text string) string {
	return truncate.String(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?")), maxReason)
}
