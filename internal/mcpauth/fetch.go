package mcpauth

import (
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/netguard"
)

const (
	fetchTimeout = 15 * time.Second
	maxDocument  = 1 << 20
)

// An answer is that of an authorization server, or of metadata.
type answer struct {
	status int
	body   []byte // of a JSON document; nil for another one
}

// exchange sends one request, and reads a JSON document. Any host may be reached that is on the
// public internet, or in a range that the operator lists: servers name them.
func (c *Config) exchange(ctx context.Context, what string, r netguard.Request) (*answer, error) {
	if _, err := checkURL(r.URL); err != nil {
		return nil, wrong("the %s of the MCP server %s cannot be used: %v", what, c.Name, err)
	}
	policy, err := c.Policy()
	if err != nil {
		return nil, wrong("the MCP server %s: %v", c.Name, err)
	}
	policy.Hosts, policy.Credentials, policy.ContentTypes = []string{"*:*"}, nil, nil
	policy.Timeout, policy.MaxBodyBytes, policy.MaxRedirects = fetchTimeout, maxDocument, -1
	guard, err := netguard.New(policy)
	if err != nil {
		return nil, wrong("the MCP server %s: %v", c.Name, err)
	}
	defer guard.Close()
	if r.Header == nil {
		r.Header = map[string]string{}
	}
	r.Header["Accept"] = "application/json"
	resp, err := guard.Do(ctx, r)
	if err != nil {
		kind := Wrong
		if f := failure.As(err); f != nil && (f.Code.Retryable() || f.Code == failure.Cancelled) {
			kind = Unreachable
		}
		return nil, &Error{Kind: kind, Text: "the " + what + " of the MCP server " + c.Name + ": " + err.Error(), Err: err}
	}
	a := &answer{status: resp.Status}
	if media, _, _ := mime.ParseMediaType(resp.MediaType); media == "application/json" || strings.HasSuffix(media, "+json") {
		a.body = resp.Body
	}
	return a, nil
}

// document fetches a document. There is none if the server answers with another status than 200.
func (c *Config) document(ctx context.Context, what, at string, into any) (found bool, err error) {
	a, err := c.exchange(ctx, what, netguard.Request{URL: at})
	switch {
	case err != nil:
		return false, err
	case a.status >= http.StatusInternalServerError:
		return false, errorf(Unreachable, "the %s of the MCP server %s cannot be had: the answer is %d", what, c.Name, a.status)
	case a.status != http.StatusOK:
		return false, nil
	case a.body == nil || json.Unmarshal(a.body, into) != nil:
		return false, wrong("the %s of the MCP server %s is no JSON document of its kind", what, c.Name)
	}
	return true, nil
}

// post sends a form or, where it is nil, a JSON document.
func (c *Config) post(ctx context.Context, what, at string, form url.Values, document any, header map[string]string) (*answer, error) {
	if header == nil {
		header = map[string]string{}
	}
	r := netguard.Request{Method: http.MethodPost, URL: at, Header: header, Body: []byte(form.Encode())}
	header["Content-Type"] = "application/x-www-form-urlencoded"
	if form == nil {
		header["Content-Type"] = "application/json"
		var err error
		if r.Body, err = json.Marshal(document); err != nil {
			return nil, err
		}
	}
	return c.exchange(ctx, what, r)
}
