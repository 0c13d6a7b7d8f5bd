package notifier

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/netguard"
	"github.com/agentd/agentd/internal/secretref"
)

// webhook is a channel whose messages are posted to a URL.
type webhook struct {
	url         string
	contentType string
	body        template
	client      *netguard.Client
}

func newWebhook(name string, c WebhookConfig, secret func(ref string) (string, error)) (*webhook, error) {
	w := &webhook{url: c.URL}
	if secretref.Is(c.URL) {
		if secret == nil {
			return nil, errors.New("url: there is nothing here to resolve references with")
		}
		var err error
		if w.url, err = secret(c.URL); err != nil {
			return nil, fmt.Errorf("url: %w", err)
		}
	}
	// No error below shows the URL, which may be a secret.
	target, err := url.Parse(w.url)
	switch {
	case err != nil || target.Host == "":
		return nil, errors.New("url: it is no URL")
	case target.User != nil:
		return nil, errors.New("url: it has a user or password before its host; write them as credentials")
	case target.Scheme != "https" && (target.Scheme != "http" || !isLoopback(target.Hostname())):
		return nil, errors.New("url: messages are posted by https, or by http to a loopback address")
	}
	switch c.Format {
	case "", "json":
		w.contentType = "application/json"
	case "form":
		w.contentType = "application/x-www-form-urlencoded"
	default:
		return nil, fmt.Errorf("format: it is json or form, not %q", c.Format)
	}
	if w.body, err = parseTemplate(name, c.Format == "form", c.Body); err != nil {
		return nil, fmt.Errorf("body: %w", err)
	}
	c.Hosts = []string{target.Host}
	c.Credentials = slices.Clone(c.Credentials)
	for i := range c.Credentials {
		c.Credentials[i].Host = target.Host // there is no other
	}
	policy, err := c.Policy(secret)
	if err != nil {
		return nil, err
	}
	// After most redirects, a POST goes on as a GET: it would look sent.
	policy.MaxRedirects = -1
	w.client, err = netguard.New(policy)
	return w, err
}

// isLoopback reports whether a host is one by its spelling. What it resolves to is
// checked with the connection, by package netguard.
func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}

func (w *webhook) check(string) error { return nil }

func (w *webhook) send(ctx context.Context, text string) error {
	body, err := w.body.fill(text)
	if err != nil {
		return err
	}
	resp, err := w.client.Do(ctx, netguard.Request{
		Method: http.MethodPost, URL: w.url, Body: body, Header: map[string]string{"Content-Type": w.contentType},
	})
	if err != nil {
		return concealed(err)
	}
	switch {
	case resp.Status >= 200 && resp.Status < 300:
		return nil
	case resp.Status == http.StatusTooManyRequests || resp.Status >= 500:
		return failure.Errorf(failure.Unavailable, "the service behind the channel cannot take the message at present (status %d)", resp.Status)
	default:
		return failure.Errorf(failure.NotAllowed, "the service behind the channel refuses the message (status %d)", resp.Status)
	}
}

// concealed takes out of an error what the caller was not given: where the service is, in
// the texts that are about URLs, and the URL itself, in the causes of net/http.
func concealed(err error) error {
	shown := failure.As(err)
	if shown == nil {
		return err
	}
	text := shown.Text
	switch shown.Code {
	case failure.NotAllowed, failure.InvalidArgument:
		text = "the service behind the channel cannot be used: it redirects, or is at a place that is not allowed"
	case failure.TooLarge, failure.Unsupported:
		text = "the service behind the channel answered at too great length or in a strange form; the message may have been sent"
	}
	hidden := failure.Errorf(shown.Code, "%s", text)
	var request *url.Error
	if errors.As(shown.Err, &request) {
		return hidden.Because(request.Err)
	}
	return hidden.Because(shown.Err)
}

func (w *webhook) close() { w.client.Close() }
