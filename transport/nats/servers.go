package nats

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/agentd/agentd/internal/secretref"
)

// resolveServer returns the URLs that one entry of Servers stands for.
func resolveServer(s string, getenv func(string) string) ([]string, error) {
	if inner, ok := strings.CutPrefix(s, "${"); ok && strings.HasSuffix(inner, "}") && secretref.Is(inner[:len(inner)-1]) {
		s = inner[:len(inner)-1] // the whole entry is one reference, in the notation of files
	}
	var urls []string
	if secretref.Is(s) {
		value, err := secretref.Resolve(s, getenv)
		if err != nil {
			return nil, err
		}
		urls = strings.Split(value, ",")
	} else {
		// Before the references are resolved: afterwards every password is literal.
		if hasLiteralPassword(s) {
			return nil, fmt.Errorf("the URL of %s: %w", hostOf(s), secretref.ErrLiteral)
		}
		value, err := secretref.Expand(s, getenv, url.QueryEscape)
		if err != nil {
			return nil, err
		}
		urls = []string{value}
	}
	for i, u := range urls {
		urls[i] = strings.TrimSpace(u)
		if err := checkServer(urls[i]); err != nil {
			return nil, err
		}
	}
	return urls, nil
}

// hasLiteralPassword reports whether a URL contains a password, or a lone token, that
// is not a reference. It works on text and not on a parsed URL: with references in it
// the text may not parse, and an error of url.Parse would show the password.
func hasLiteralPassword(s string) bool {
	const reference = "\x00" // no URL contains it
	s = regexp.MustCompile(`\$\{[^}]*\}`).ReplaceAllLiteralString(s, reference)
	if _, after, ok := strings.Cut(s, "://"); ok {
		s = after
	}
	secret, _, ok := cutLast(s, "@")
	if _, password, both := strings.Cut(secret, ":"); both {
		secret = password
	}
	return ok && secret != reference
}

// cutLast is [strings.Cut] around the last sep: a password may contain an @.
func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// hostOf returns what follows the user and the password of a URL.
func hostOf(s string) string {
	_, host, _ := cutLast(s, "@")
	return host
}

// checkServer rejects what is not the URL of a NATS server. Its errors show nothing of
// what precedes the host.
func checkServer(s string) error {
	text := s
	if !strings.Contains(text, "://") {
		text = "nats://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return fmt.Errorf("%q is not the URL of a NATS server, such as nats://broker.example:4222", hostOrAll(s))
	}
	switch u.Scheme {
	case "nats", "tls", "ws", "wss":
		return nil
	}
	return fmt.Errorf("%s: the scheme of a NATS server is nats, tls, ws or wss", u.Redacted())
}

// hostOrAll is a URL as errors and logs may show it.
func hostOrAll(s string) string {
	if strings.Contains(s, "@") {
		return "…@" + hostOf(s)
	}
	return s
}

// redactedServers lists the servers as an error may show them.
func (r *resolved) redactedServers() string {
	shown := make([]string, len(r.Servers))
	for i, s := range r.Servers {
		shown[i] = hostOrAll(s)
	}
	return strings.Join(shown, ",")
}
