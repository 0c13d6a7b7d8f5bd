package netguard

import (
	"net/http"
	"net/url"

	"github.com/agentd/agentd/internal/failure"
)

// checkRedirect judges the next request, req, after those in via: as the first one was
// judged, and with what the caller sent for the first origin left behind at any other.
func (c *Client) checkRedirect(req *http.Request, via []*http.Request) error {
	if c.policy.ReturnRedirects {
		return http.ErrUseLastResponse
	}
	if len(via) > max(c.policy.MaxRedirects, 0) {
		return failure.Errorf(failure.NotAllowed, "the answer redirects more often than %d times", max(c.policy.MaxRedirects, 0))
	}
	if err := c.judge(req.URL); err != nil {
		return failure.Errorf(failure.NotAllowed, "the answer redirects to a place that is not allowed: %v", err).Because(err)
	}
	// The Host header of the first request would otherwise go to the next host.
	req.Host = ""
	// It names the page before, with its query.
	req.Header.Del("Referer")

	crossed := false
	for _, earlier := range append(via[1:len(via):len(via)], req) {
		crossed = crossed || !sameOrigin(earlier.URL, via[0].URL)
	}
	if !crossed {
		return nil
	}
	if req.Body != nil && req.Body != http.NoBody {
		return failure.Errorf(failure.NotAllowed, "the answer redirects the body of the request to another host")
	}
	for name := range req.Header {
		if !followsRedirect(name) {
			req.Header.Del(name)
		}
	}
	return nil
}

// sameOrigin compares URLs that were judged, and thus have hosts in one form.
func sameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }
