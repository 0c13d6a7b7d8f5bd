package netguard

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/internal/truncate"
)

// gzipOverhead is what a gzip header and trailer, and blocks of data that cannot be
// compressed, add to a body at most, generously.
const gzipOverhead = 64 << 10

// minRedacted is the length from which a credential is looked for in answers: a shorter
// one would be found by chance.
const minRedacted = 8

// read reads an answer within the limits. An answer over one is refused whole: half of a
// document misleads.
func (c *Client) read(ctx context.Context, resp *http.Response) (*Response, error) {
	r := &Response{Status: resp.StatusCode, Header: resp.Header, URL: resp.Request.URL.String()}
	limit := c.policy.MaxBodyBytes
	coding := strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding")))
	compressed := coding == "gzip" || coding == "x-gzip"
	switch {
	case !compressed && coding != "" && coding != "identity":
		return nil, failure.Errorf(failure.Unsupported, "the answer is compressed in a way that was not asked for")
	case !compressed && resp.ContentLength > limit:
		return nil, errTooLarge(limit)
	}
	var err error
	if r.Body, err = readAll(ctx, resp.Body, compressed, limit); err != nil {
		return nil, err
	}
	c.redact(r)
	if len(r.Body) == 0 {
		return r, nil
	}
	media, params, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		// What is not labelled is bytes (RFC 9110, section 8.3).
		media, params = "application/octet-stream", nil
	}
	if !c.rules.accepts(media) {
		return nil, failure.Errorf(failure.Unsupported, "the answer, with status %d, is of the type %s, which this agent does not accept",
			r.Status, truncate.Quote(media))
	}
	r.MediaType, r.Charset = media, strings.ToLower(params["charset"])
	return r, nil
}

// readAll reads a body of at most limit bytes. Compressed input is bounded as well: gzip
// can go on for ever without a byte of output.
func readAll(ctx context.Context, body io.Reader, compressed bool, limit int64) ([]byte, error) {
	source := &io.LimitedReader{R: body, N: limit + gzipOverhead}
	var from io.Reader = source
	if compressed {
		unpacked, err := gzip.NewReader(source)
		if errors.Is(err, io.EOF) {
			return nil, nil // no body, as after HEAD and with 304
		}
		if err != nil {
			return nil, errBody(ctx, err)
		}
		from = unpacked
	}
	data, err := io.ReadAll(io.LimitReader(from, limit+1))
	if int64(len(data)) > limit || source.N <= 0 {
		return nil, errTooLarge(limit)
	}
	if err != nil {
		return nil, errBody(ctx, err)
	}
	// A server that sees the client leave may end its answer in good form, and be quicker
	// than the connection's end: what it sent so far would look whole.
	if ended := failure.Ended(ctx, "the request"); ended != nil {
		return nil, ended
	}
	return data, nil
}

func errTooLarge(limit int64) *failure.Error {
	return failure.Errorf(failure.TooLarge, "the answer has more than %d bytes", limit)
}

func errBody(ctx context.Context, err error) *failure.Error {
	if ended := failure.Ended(ctx, "the request"); ended != nil {
		return ended.Because(err)
	}
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) {
		return failure.Errorf(failure.Unsupported, "the answer is not the gzip that it says it is").Because(err)
	}
	return failure.Errorf(failure.Network, "the answer broke off").Because(err)
}

// accepts reports whether the operator accepts answers of a media type.
func (r rules) accepts(media string) bool {
	if len(r.types) == 0 {
		return true
	}
	kind, sub, _ := strings.Cut(media, "/")
	for _, t := range r.types {
		wantKind, wantSub, _ := strings.Cut(t, "/")
		suffix, hasSuffix := strings.CutPrefix(wantSub, "*+")
		switch {
		case wantKind != "*" && wantKind != kind:
		case wantSub == "*" || wantSub == sub:
			return true
		case hasSuffix && strings.HasSuffix(sub, "+"+suffix):
			return true
		}
	}
	return false
}

// redact takes the operator's secrets out of an answer: a host that shows its callers
// what they sent would show them to the model.
func (c *Client) redact(r *Response) {
	const mark = "[redacted]"
	for _, secret := range c.rules.secrets {
		r.Body = bytes.ReplaceAll(r.Body, []byte(secret), []byte(mark))
		for _, values := range r.Header {
			for i, value := range values {
				values[i] = strings.ReplaceAll(value, secret, mark)
			}
		}
	}
}

// forms returns the ways in which answers write secrets: as they are, in a URL, and in
// JSON, where some escape slashes and some do not. Longer ones come first: a secret may
// be a part of another.
func forms(secrets []string) []string {
	var all []string
	for _, secret := range secrets {
		if len(secret) < minRedacted {
			continue
		}
		quoted := string(ijson.AppendQuoted(nil, secret))
		quoted = quoted[1 : len(quoted)-1]
		all = append(all, secret, url.QueryEscape(secret), url.PathEscape(secret), quoted, strings.ReplaceAll(quoted, "/", `\/`))
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	return slices.Compact(all)
}
