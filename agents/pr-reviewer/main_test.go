package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/skill/sdk"
)

// wantPublic demands an error that the caller may read.
func wantPublic(t *testing.T, err error, message string, retryable bool) {
	t.Helper()
	var public *sdk.PublicError
	if !errors.As(err, &public) || !strings.Contains(public.Message, message) || public.Retryable != retryable {
		t.Errorf("got %v (%+v), want %q, retryable %t", err, public, message, retryable)
	}
}

func TestFetchPatch(t *testing.T) {
	outside := t.TempDir()
	root := filepath.Join(outside, "fleet")
	for name, size := range map[string]int64{"secret.patch": 10, "fleet/fleet.yaml": 10, "fleet/a/b.patch": 10, "fleet/b.diff": 10, "fleet/max.patch": maxDiffBytes, "fleet/big.patch": maxDiffBytes + 1} {
		path := filepath.Join(outside, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil { // a hole, not eight megabytes
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(outside, "secret.patch"), filepath.Join(root, "link.patch")); err != nil {
		t.Fatal(err)
	}
	s := source{root: root}
	for name, size := range map[string]int{"a/b.patch": 10, "./a/../b.diff": 10, "max.patch": maxDiffBytes} {
		if diff, err := s.fetch(t.Context(), "file:"+name); err != nil || len(diff) != size {
			t.Errorf("%s: %d bytes, %v", name, len(diff), err)
		}
	}
	for name, want := range map[string]string{
		"none.patch":       "there is no file none.patch in the fleet's folder",
		"../secret.patch":  "there is no file",
		"link.patch":       "there is no file",
		"/etc/x.patch":     "there is no file",
		"//" + root + "/b": "names a .patch or .diff file",
		"fleet.yaml":       "names a .patch or .diff file",
		"":                 "names a .patch or .diff file",
		"big.patch":        "larger than 8388608 bytes",
	} {
		_, err := s.fetch(t.Context(), "file:"+name)
		wantPublic(t, err, want, false)
	}
	_, err := source{}.fetch(t.Context(), "file:a.patch")
	wantPublic(t, err, "there is no file", false)
}

// gitHub is a transport to a server that stands for every host, and counts on
// real TLS and real redirects.
func gitHub(t *testing.T, handler http.HandlerFunc) *http.Transport {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	transport := server.Client().Transport.(*http.Transport).Clone()
	transport.TLSClientConfig.ServerName = "example.com" // the name in the server's certificate
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
	}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

func TestFetchPullRequest(t *testing.T) {
	s := source{transport: gitHub(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.Host + r.URL.Path {
		case "github.com/o/r/pull/1.diff":
			http.Redirect(w, r, "https://patch-diff.githubusercontent.com/raw/o/r/pull/1.diff", http.StatusFound)
		case "patch-diff.githubusercontent.com/raw/o/r/pull/1.diff":
			_, _ = io.WriteString(w, "the diff")
		case "github.com/o/r/pull/2.diff":
			http.Redirect(w, r, "https://githubusercontent.com.evil.example/x", http.StatusFound)
		case "github.com/o/r/pull/3.diff":
			http.Redirect(w, r, "http://github.com/o/r/pull/1.diff", http.StatusFound)
		case "github.com/o/r/pull/4.diff":
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
		case "github.com/o/r/pull/5.diff":
			w.WriteHeader(http.StatusTooManyRequests)
		case "github.com/o/r/pull/6.diff":
			w.WriteHeader(http.StatusInternalServerError)
		case "github.com/o/r/pull/7.diff":
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "cut")
		case "github.com/o/r/pull/8.diff":
			_, _ = w.Write(make([]byte, maxDiffBytes+1))
		case "github.com/o/r/pull/9.diff":
			http.NotFound(w, r)
		default:
			t.Errorf("a request for %s%s", r.Host, r.URL)
		}
	})}
	for _, page := range []string{"1", "1/", "1.diff", "1/files", "1/commits/"} {
		if diff, err := s.fetch(t.Context(), "https://github.com/o/r/pull/"+page); err != nil || string(diff) != "the diff" {
			t.Errorf("%s: %q, %v", page, diff, err)
		}
	}
	for _, tt := range []struct {
		prURL, want string
		retryable   bool
	}{
		{"https://github.com/o/r/pull/2", "GitHub answered 302 Found for https://github.com/o/r/pull/2.diff", false},
		{"https://github.com/o/r/pull/3", "GitHub answered 302", false},
		{"https://github.com/o/r/pull/4", "GitHub answered 302", false},
		{"https://github.com/o/r/pull/5", "GitHub answered 429", true},
		{"https://github.com/o/r/pull/6", "GitHub answered 500", true},
		{"https://github.com/o/r/pull/7", "could not be read to its end", true},
		{"https://github.com/o/r/pull/8", "larger than", false},
		{"https://github.com/o/r/pull/9", "GitHub answered 404", false},
		{"http://github.com/o/r/pull/1", "prUrl is neither", false},
		{"https://github.com.evil.example/o/r/pull/1", "prUrl is neither", false},
		{"https://github.com@evil.example/o/r/pull/1", "prUrl is neither", false},
		{"https://github.com/o/r/pull/1/commits/abc", "prUrl is neither", false},
		{"https://github.com/o/r/issues/1", "prUrl is neither", false},
		{"https://127.0.0.1/o/r/pull/1", "prUrl is neither", false},
		{"gopher://x", "prUrl is neither", false},
		{"", "prUrl is neither", false},
	} {
		_, err := s.fetch(t.Context(), tt.prURL)
		wantPublic(t, err, tt.want, tt.retryable)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.fetch(ctx, "https://github.com/o/r/pull/1")
	wantPublic(t, err, "GitHub cannot be reached", true)
}

func TestReviewPR(t *testing.T) {
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	ctx := sdk.WithEnvironment(t.Context(), sdk.Environment{FleetRoot: root})
	got, err := reviewPR(ctx, input{PRURL: "file:patches/invoice-export.patch", Severity: "high"})
	if err != nil || got.Verdict != "request-changes" || len(got.Findings) != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
	_, err = reviewPR(ctx, input{PRURL: "file:patches/none.patch", Severity: "high"})
	wantPublic(t, err, "there is no file patches/none.patch", false)

	page := filepath.Join(t.TempDir(), "page.patch")
	if err := os.WriteFile(page, []byte("<html>"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx = sdk.WithEnvironment(t.Context(), sdk.Environment{FleetRoot: filepath.Dir(page)})
	_, err = reviewPR(ctx, input{PRURL: "file:page.patch", Severity: "high"})
	wantPublic(t, err, "the diff cannot be reviewed: it is not a unified diff", false)
}
