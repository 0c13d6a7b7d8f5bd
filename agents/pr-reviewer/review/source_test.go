package review

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const tinyDiff = "--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+x\n"

// fleetRoot makes a folder with a diff, things around it, and ways out.
func fleetRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	outside := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(root, "patches", "a b.patch"), tinyDiff)
	write(filepath.Join(root, "fleet.yaml"), "version: 1\n")
	write(filepath.Join(outside, "secret.patch"), tinyDiff)
	if err := os.Mkdir(filepath.Join(root, "dir.patch"), 0o755); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{
		"inside.patch": "patches/a b.patch",
		"escape.patch": filepath.Join(outside, "secret.patch"),
		"out":          outside,
	} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// wantRefusal checks that err is a FetchError with want in its public message.
func wantRefusal(t *testing.T, err error, want string, temporary bool) {
	t.Helper()
	var fetch *FetchError
	if !errors.As(err, &fetch) || !strings.Contains(fetch.Message, want) || fetch.Temporary != temporary {
		t.Errorf("got %v (%+v), want a refusal with %q, temporary %t", err, fetch, want, temporary)
	}
}

func TestFetchFile(t *testing.T) {
	root := fleetRoot(t)
	s := Source{Root: root}
	for _, prURL := range []string{
		"file:patches/a%20b.patch",
		"file:./patches/../patches/a%20b.patch",
		"file://" + root + "/patches/a%20b.patch",
		"file:inside.patch",
		"FILE:patches/a%20b.patch",
	} {
		if got, err := s.Fetch(t.Context(), prURL); err != nil || string(got) != tinyDiff {
			t.Errorf("%s: %q, %v", prURL, got, err)
		}
	}
}

func TestFetchFileRefusals(t *testing.T) {
	root := fleetRoot(t)
	s := Source{Root: root}
	tests := []struct{ name, prURL, want string }{
		{"missing", "file:patches/none.patch", "there is no file patches/none.patch"},
		{"up", "file:../secret.patch", "leaves the fleet's folder"},
		{"up, escaped", "file:patches%2f..%2f..%2fsecret.patch", "leaves the fleet's folder"},
		{"absolute", "file:///etc/passwd.patch", "leaves the fleet's folder"},
		{"absolute, up", "file://" + root + "/../secret.patch", "leaves the fleet's folder"},
		{"sibling with the same prefix", "file://" + root + "x/secret.patch", "leaves the fleet's folder"},
		{"link out", "file:escape.patch", "cannot be opened"},
		{"folder link out", "file:out/secret.patch", "cannot be opened"},
		{"not a diff", "file:fleet.yaml", "must name a .patch or .diff file"},
		{"folder", "file:dir.patch", "not a regular file"},
		{"host", "file://example.com/a.patch", "a path and nothing else"},
		{"query", "file:a.patch?x=1", "a path and nothing else"},
		{"empty", "file:", "must name a .patch or .diff file"},
		{"bad escape", "file:%zz.patch", "badly escaped"},
		{"null byte", "file:a%00.patch", "cannot be opened"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := s.Fetch(t.Context(), tt.prURL)
			wantRefusal(t, err, tt.want, false)
			if strings.Contains(err.(*FetchError).Message, root) && !strings.Contains(tt.prURL, root) {
				t.Errorf("the message shows the folder: %s", err)
			}
		})
	}
	t.Run("no root", func(t *testing.T) {
		_, err := new(Source).Fetch(t.Context(), "file:a.patch")
		wantRefusal(t, err, "not known here", false)
	})
	t.Run("too large", func(t *testing.T) {
		small := Source{Root: root, MaxBytes: int64(len(tinyDiff)) - 1}
		_, err := small.Fetch(t.Context(), "file:inside.patch")
		wantRefusal(t, err, "larger than", false)
	})
	t.Run("just fits", func(t *testing.T) {
		fits := Source{Root: root, MaxBytes: int64(len(tinyDiff))}
		if _, err := fits.Fetch(t.Context(), "file:inside.patch"); err != nil {
			t.Error(err)
		}
	})
}

func TestFetchRefusesOtherURLs(t *testing.T) {
	tests := []struct{ prURL, want string }{
		{"ftp://example.com/a.patch", `the scheme "ftp"`},
		{"javascript:alert(1)", `the scheme "javascript"`},
		{"github.com/o/r/pull/1", "needs a scheme"},
		{"", "needs a scheme"},
		{"http://[::1", "not a URL"},
		{"https:///path", "has no host"},
		{"https://user:pw@example.com/x.patch", "user name or password"},
	}
	for _, tt := range tests {
		_, err := new(Source).Fetch(t.Context(), tt.prURL)
		wantRefusal(t, err, tt.want, false)
	}
}

// web serves handler on loopback and returns its URL.
func web(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func TestFetchHTTP(t *testing.T) {
	base := web(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/a.diff":
			_, _ = io.WriteString(w, tinyDiff)
		case "/moved":
			http.Redirect(w, r, "/a.diff", http.StatusFound)
		case "/group/repo/-/merge_requests/7.diff":
			_, _ = io.WriteString(w, tinyDiff)
		default:
			http.NotFound(w, r)
		}
	})
	s := Source{AllowPrivate: true}
	for _, path := range []string{"/a.diff", "/moved", "/group/repo/-/merge_requests/7/diffs?tab=1#note"} {
		if got, err := s.Fetch(t.Context(), base+path); err != nil || string(got) != tinyDiff {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
}

func TestFetchHTTPRefusals(t *testing.T) {
	base := web(t, func(w http.ResponseWriter, r *http.Request) {
		redirect := func(to string) { http.Redirect(w, r, to, http.StatusFound) }
		switch r.URL.Path {
		case "/404", "/401", "/403", "/429", "/503", "/204", "/418":
			code := map[string]int{"/404": 404, "/401": 401, "/403": 403, "/429": 429, "/503": 503, "/204": 204, "/418": 418}
			w.WriteHeader(code[r.URL.Path])
		case "/page":
			_, _ = io.WriteString(w, "<!DOCTYPE html><html>")
		case "/announced":
			w.Header().Set("Content-Length", "1000000")
			_, _ = w.Write(make([]byte, 1000))
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			zip := gzip.NewWriter(w)
			_, _ = zip.Write(make([]byte, 1<<20))
			_ = zip.Close()
		case "/cut":
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "--- a")
		case "/loop":
			redirect("/loop")
		case "/to-file":
			redirect("file:///etc/passwd")
		case "/to-user":
			redirect("http://user:pw@" + r.Host + "/a")
		}
	})
	tests := []struct {
		path, want string
		temporary  bool
	}{
		{"/404", "HTTP 404: there is no such diff", false},
		{"/401", "HTTP 401", false},
		{"/403", "HTTP 403", false},
		{"/418", "HTTP 418 instead of a diff", false},
		{"/204", "HTTP 204 instead of a diff", false},
		{"/429", "HTTP 429", true},
		{"/503", "HTTP 503", true},
		{"/page", "a web page instead of a diff", false},
		{"/announced", "larger than 4096 bytes", false},
		{"/bomb", "larger than 4096 bytes", false},
		{"/cut", "could not be read to its end", true},
		{"/loop", "more than 5 redirects", false},
		{"/to-file", `the scheme "file"`, false},
		{"/to-user", "user name or password", false},
	}
	s := Source{AllowPrivate: true, MaxBytes: 4096}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			_, err := s.Fetch(t.Context(), base+tt.path)
			wantRefusal(t, err, tt.want, tt.temporary)
		})
	}
}

func TestFetchRefusesDowngrade(t *testing.T) {
	plain := web(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, tinyDiff) })
	from, _ := http.NewRequest(http.MethodGet, "https://example.com/", nil)
	to, _ := http.NewRequest(http.MethodGet, plain, nil)
	err := new(Source).client().CheckRedirect(to, []*http.Request{from})
	wantRefusal(t, err, "from https: to http:", false)
}

func TestFetchRefusesPrivateHosts(t *testing.T) {
	reached := false
	base := web(t, func(http.ResponseWriter, *http.Request) { reached = true })
	port := base[strings.LastIndexByte(base, ':'):]
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "127.1.2.3", "0.0.0.0"} {
		_, err := new(Source).Fetch(t.Context(), "http://"+host+port+"/a.diff")
		var fetch *FetchError
		if !errors.As(err, &fetch) || fetch.Temporary {
			t.Errorf("%s: %v, want a final refusal", host, err)
		}
	}
	if reached {
		t.Error("a request reached the loopback server")
	}
}

func TestFetchTimesOut(t *testing.T) {
	release := make(chan struct{})
	base := web(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	_, err := (&Source{AllowPrivate: true, Timeout: 20 * time.Millisecond}).Fetch(t.Context(), base)
	wantRefusal(t, err, "did not answer in time", true)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = (&Source{AllowPrivate: true}).Fetch(ctx, base)
	wantRefusal(t, err, "cancelled", true)
}

func TestFetchUnreachable(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close() // nothing listens there now
	_, err := (&Source{AllowPrivate: true}).Fetch(t.Context(), server.URL)
	wantRefusal(t, err, "127.0.0.1 cannot be reached", true)
}

func TestDiffURL(t *testing.T) {
	tests := []struct{ in, want string }{
		{"https://github.com/o/r/pull/12", "https://github.com/o/r/pull/12.diff"},
		{"https://github.com/o/r/pull/12/", "https://github.com/o/r/pull/12.diff"},
		{"https://www.github.com/o/r/pull/12/files?w=1#diff-1", "https://www.github.com/o/r/pull/12.diff"},
		{"https://github.com/o/r/pull/12.diff", "https://github.com/o/r/pull/12.diff"},
		{"https://github.com/o/r/pull/12.patch", "https://github.com/o/r/pull/12.patch"},
		{"https://github.com/o/r/pull/12/commits/abc", "https://github.com/o/r/pull/12/commits/abc"},
		{"https://github.com/o/r/commit/abc.diff", "https://github.com/o/r/commit/abc.diff"},
		{"https://github.com.evil.example/o/r/pull/12", "https://github.com.evil.example/o/r/pull/12"},
		{"https://gitlab.com/g/s/r/-/merge_requests/3", "https://gitlab.com/g/s/r/-/merge_requests/3.diff"},
		{"https://example.com/x.diff?token=1", "https://example.com/x.diff?token=1"},
	}
	for _, tt := range tests {
		u, err := url.Parse(tt.in)
		if err != nil {
			t.Fatal(err)
		}
		if got := diffURL(u).String(); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.in, got, tt.want)
		}
	}
}

func TestIsPublic(t *testing.T) {
	public := []string{"140.82.121.4", "8.8.8.8", "2606:4700::1111", "2a00:1450:4001::1"}
	other := []string{
		"127.0.0.1", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "0.1.2.3",
		"192.0.2.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
		"::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "fec0::1", "ff02::1", "::ffff:10.0.0.1", "::10.0.0.1",
		"64:ff9b::a00:1", "2002:a00:1::", "2001:0:1::1", "2001:db8::1",
	}
	for _, text := range public {
		if !isPublic(netip.MustParseAddr(text)) {
			t.Errorf("%s does not count as public", text)
		}
	}
	for _, text := range other {
		if isPublic(netip.MustParseAddr(text)) {
			t.Errorf("%s counts as public", text)
		}
	}
}
