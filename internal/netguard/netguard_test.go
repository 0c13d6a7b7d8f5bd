package netguard_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/netguard"
)

// names is a DNS server of the test's own: one answer per lookup of a name, the last one
// for ever.
type names struct {
	conn    net.PacketConn
	answers map[string][][]string
	lookups map[string]*atomic.Int64
}

func serveNames(t *testing.T, answers map[string][][]string) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &names{conn: conn, answers: answers, lookups: map[string]*atomic.Int64{}}
	for name := range answers {
		n.lookups[name] = &atomic.Int64{}
	}
	done := make(chan struct{})
	go func() { defer close(done); n.serve() }()
	t.Cleanup(func() { conn.Close(); <-done })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func (n *names) serve() {
	packet := make([]byte, 1500)
	for {
		size, from, err := n.conn.ReadFrom(packet)
		if err != nil {
			return
		}
		n.conn.WriteTo(n.answer(packet[:size]), from)
	}
}

// answer writes a message of RFC 1035: the question again, and A records.
func (n *names) answer(query []byte) []byte {
	var labels []string
	i := 12
	for query[i] != 0 {
		labels = append(labels, string(query[i+1:i+1+int(query[i])]))
		i += 1 + int(query[i])
	}
	question := query[12 : i+5]
	name := strings.Join(labels, ".")
	var addrs []string
	rounds := n.answers[name]
	const typeA = 1
	if query[i+2] == typeA && rounds != nil {
		addrs = rounds[min(int(n.lookups[name].Add(1)), len(rounds))-1]
	}
	rcode := byte(0)
	if rounds == nil {
		rcode = 3 // no such name
	}
	m := append([]byte{query[0], query[1], 0x81, 0x80 | rcode, 0, 1, 0, byte(len(addrs)), 0, 0, 0, 0}, question...)
	for _, a := range addrs {
		m = append(m, 0xc0, 12, 0, typeA, 0, 1, 0, 0, 0, 0, 0, 4)
		m = append(m, netip.MustParseAddr(a).AsSlice()...)
	}
	return m
}

// serveTLS starts an HTTPS server whose certificate, of a CA of its own, is for
// example.com, and returns its port and a policy that reaches it.
func serveTLS(t *testing.T, handler http.HandlerFunc) (port string, p netguard.Policy) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of clients that break off
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	_, port, _ = net.SplitHostPort(server.Listener.Addr().String())
	return port, netguard.Policy{
		Hosts:          []string{"example.com:*"},
		AllowAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
		RootCAs:        roots,
		Resolver:       serveNames(t, map[string][][]string{"example.com": {{"127.0.0.1"}}}),
		Timeout:        time.Minute,
	}
}

func client(t *testing.T, p netguard.Policy) *netguard.Client {
	t.Helper()
	c, err := netguard.New(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func code(err error) failure.Code {
	if e := failure.As(err); e != nil {
		return e.Code
	}
	return ""
}

func TestGet(t *testing.T) {
	port, p := serveTLS(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "Text/HTML; charset=ISO-8859-1")
		fmt.Fprint(w, r.Method, " ", r.URL, " ", r.Host, " ", r.Header.Get("X-Mine"), " ", r.UserAgent())
	})
	resp, err := client(t, p).Do(t.Context(), netguard.Request{URL: "https://Example.COM.:" + port + "/a%20b?c=d#e", Header: map[string]string{"x-mine": "yes"}})
	if err != nil {
		t.Fatal(err)
	}
	want := "GET /a%20b?c=d example.com:" + port + " yes agentd"
	if resp.Status != 200 || string(resp.Body) != want || resp.MediaType != "text/html" || resp.Charset != "iso-8859-1" {
		t.Errorf("%+v: %s", resp, resp.Body)
	}
}

// The name leads to an allowed address when it is looked up first and elsewhere later:
// the second connection is refused on its way out.
func TestRebinding(t *testing.T) {
	_, p := serveTLS(t, nil)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	// The other address, at the same port: where a connection would be seen.
	inside, err := net.Listen("tcp", "127.0.0.2:"+port)
	if err != nil {
		t.Skipf("no second loopback address here: %v", err)
	}
	defer inside.Close()
	p.Resolver = serveNames(t, map[string][][]string{
		"example.com": {{"127.0.0.1"}, {"127.0.0.2"}, {"169.254.169.254"}, {"127.0.0.2", "127.0.0.1"}},
	})
	c := client(t, p)
	get := func() error {
		c.Close() // connections that are kept would need no lookup
		_, err := c.Do(t.Context(), netguard.Request{URL: "http://example.com:" + port})
		return err
	}
	if err := get(); err != nil {
		t.Fatalf("the first lookup: %v", err)
	}
	for _, where := range []string{"the second lookup", "the third lookup"} {
		if err := get(); code(err) != failure.NotAllowed {
			t.Errorf("%s: %v", where, err)
		}
	}
	if err := get(); err != nil {
		t.Errorf("of two addresses, the allowed one: %v", err)
	}
	inside.(*net.TCPListener).SetDeadline(time.Now())
	if conn, err := inside.Accept(); err == nil {
		conn.Close()
		t.Error("there was a connection to the address that is not allowed")
	}
}

// Every row is refused, with its code, and quickly.
func TestAdversary(t *testing.T) {
	var zeros atomic.Int64 // bytes that the servers sent
	write := func(w http.ResponseWriter, data []byte, times int) {
		for range times {
			n, err := w.Write(data)
			zeros.Add(int64(n))
			if err != nil {
				return
			}
		}
	}
	var port string
	port, p := serveTLS(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		switch path, arg, _ := strings.Cut(r.URL.Path[1:], "/"); path {
		case "redirect":
			http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
		case "loop":
			http.Redirect(w, r, "/loop/"+arg+"x", http.StatusTemporaryRedirect)
		case "zeros": // 10 GB, chunked
			write(w, make([]byte, 1<<20), 10<<10)
		case "length":
			w.Header().Set("Content-Length", "10737418240")
			write(w, make([]byte, 1<<20), 10<<10)
		case "bomb": // a few MB that unpack to 10 GB
			w.Header().Set("Content-Encoding", "gzip")
			var block bytes.Buffer
			z, _ := gzip.NewWriterLevel(&block, gzip.BestCompression)
			z.Write(make([]byte, 10<<20))
			z.Close()
			write(w, block.Bytes(), 1<<10)
		case "hollow": // gzip members without content, for ever
			w.Header().Set("Content-Encoding", "gzip")
			var member bytes.Buffer
			gzip.NewWriter(&member).Close()
			write(w, bytes.Repeat(member.Bytes(), 1<<10), 1<<20)
		case "nested":
			w.Header().Set("Content-Encoding", "gzip, gzip")
			write(w, []byte("x"), 1)
		case "brotli":
			w.Header().Set("Content-Encoding", "br")
			write(w, []byte("x"), 1)
		case "notgzip":
			w.Header().Set("Content-Encoding", "gzip")
			write(w, []byte("hello, this is text"), 1)
		case "type":
			w.Header()["Content-Type"] = []string{r.URL.Query().Get("is")}
			write(w, []byte("x"), 1)
		case "headers":
			for i := range 2000 {
				w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", 100))
			}
		case "drip":
			for r.Context().Err() == nil {
				w.Write([]byte("."))
				w.(http.Flusher).Flush()
				select {
				case <-r.Context().Done():
				case <-time.After(10 * time.Millisecond):
				}
			}
		case "silent":
			<-r.Context().Done()
		case "short":
			w.Header().Set("Content-Length", "100")
			w.Write([]byte("x"))
		}
	})
	base := "https://example.com:" + port
	p.Hosts = append(p.Hosts, "*.internal.test", "meta.test", "127.0.0.1:*", "localhost:*", "169.254.169.254", "[::1]:*", "[::ffff:10.0.0.1]", "0.0.0.0:*")
	p.Resolver = serveNames(t, map[string][][]string{
		"example.com": {{"127.0.0.1"}}, "a.internal.test": {{"10.0.0.1"}}, "meta.test": {{"169.254.169.254"}}, "zero.internal.test": {{"0.0.0.0"}},
	})
	p.ContentTypes = []string{"text/*", "application/json", "application/*+json"}
	c := client(t, p)
	for _, row := range []struct {
		name, url string
		want      failure.Code
	}{
		{"file", "file:///etc/passwd", failure.NotAllowed},
		{"gopher", "gopher://example.com/", failure.NotAllowed},
		{"no scheme", "example.com", failure.NotAllowed},
		{"no host", "https:///x", failure.InvalidArgument},
		{"long", base + "/" + strings.Repeat("x", 8<<10), failure.InvalidArgument},
		{"line break", base + "/\r\nX: y", failure.InvalidArgument},
		{"unlisted host", "https://evil.test/", failure.NotAllowed},
		{"user", "https://example.com@evil.test/", failure.NotAllowed},
		{"password", "https://a:b@example.com:" + port, failure.NotAllowed},
		{"unlisted port", "https://meta.test:22/", failure.NotAllowed},
		{"metadata", "http://169.254.169.254/latest/meta-data/", failure.NotAllowed},
		{"metadata by name", "http://meta.test/latest/meta-data/", failure.NotAllowed},
		{"private by name", "http://a.internal.test/", failure.NotAllowed},
		{"unspecified by name", "http://zero.internal.test/", failure.NotAllowed},
		{"unspecified", "http://0.0.0.0:" + port, failure.NotAllowed},
		{"IPv6 loopback", "http://[::1]:" + port, failure.NotAllowed},
		{"IPv4 in IPv6", "http://[::ffff:10.0.0.1]/", failure.NotAllowed},
		{"IPv4 in IPv6, hex", "http://[::ffff:a00:1]/", failure.NotAllowed},
		{"a zone", "http://[fe80::1%25lo]/", failure.InvalidArgument},
		{"decimal", "http://2130706433/", failure.InvalidArgument},
		{"hex", "http://0x7f000001/", failure.InvalidArgument},
		{"octal", "http://0177.0.0.1/", failure.InvalidArgument},
		{"short form", "http://127.1/", failure.InvalidArgument},
		{"wide digits", "http://１２７.0.0.1/", failure.InvalidArgument},
		{"unknown name", "http://nowhere.internal.test/", failure.Network},
		{"redirect to metadata", base + "/redirect?to=http://169.254.169.254/", failure.NotAllowed},
		{"redirect to metadata by name", base + "/redirect?to=http://meta.test/", failure.NotAllowed},
		{"redirect to IPv4 in IPv6", base + "/redirect?to=http://[::ffff:10.0.0.1]/", failure.NotAllowed},
		{"redirect to decimal", base + "/redirect?to=http://2852039166/", failure.NotAllowed},
		{"redirect to file", base + "/redirect?to=file:///etc/passwd", failure.NotAllowed},
		{"redirect to unlisted", base + "/redirect?to=https://evil.test/", failure.NotAllowed},
		{"redirect to user", base + "/redirect?to=https://a@example.com:" + port, failure.NotAllowed},
		{"redirect for ever", base + "/loop/", failure.NotAllowed},
		{"10 GB of zeros", base + "/zeros", failure.TooLarge},
		{"10 GB announced", base + "/length", failure.TooLarge},
		{"gzip bomb", base + "/bomb", failure.TooLarge},
		{"gzip without content", base + "/hollow", failure.TooLarge},
		{"gzip in gzip", base + "/nested", failure.Unsupported},
		{"brotli", base + "/brotli", failure.Unsupported},
		{"no gzip", base + "/notgzip", failure.Unsupported},
		{"image", base + "/type?is=image/png", failure.Unsupported},
		{"no type", base + "/type?is=", failure.Unsupported},
		{"malformed type", base + "/type?is=;;", failure.Unsupported},
		{"headers", base + "/headers", failure.Network}, // HTTP/2 ends the stream
		{"slow drip", base + "/drip", failure.Timeout},
		{"silence", base + "/silent", failure.Timeout},
		{"breaks off", base + "/short", failure.Network},
		{"http to https", "http://example.com:" + port, failure.Unsupported},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := netguard.Request{URL: row.url}
			if row.want == failure.Timeout {
				r.Timeout = 200 * time.Millisecond
			}
			resp, err := c.Do(t.Context(), r)
			if code(err) != row.want {
				t.Fatalf("%v, %v", resp, err)
			}
			for _, internal := range []string{"dial tcp", "lookup", "127.0.0.1", "net/http", "goroutine"} {
				if strings.Contains(err.Error(), internal) && !strings.Contains(row.url, internal) {
					t.Errorf("the error shows %q: %v", internal, err)
				}
			}
			for cause := errors.Unwrap(err); cause != nil; cause = errors.Unwrap(cause) {
				if strings.Contains(cause.Error(), row.url) {
					t.Errorf("the log would have the URL: %v", cause)
				}
			}
		})
	}
	// Buffers of the kernel and of both ends hold some; 10 GB do not.
	if sent := zeros.Load(); sent > 256<<20 {
		t.Errorf("the servers could send %d bytes", sent)
	}
}

// HTTP/1 has its own limit for headers, and its own error.
func TestHeaderLimit(t *testing.T) {
	_, p := serveTLS(t, nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Long", strings.Repeat("x", 100<<10))
	}))
	t.Cleanup(server.Close)
	p.Hosts = []string{"127.0.0.1:*"}
	if _, err := client(t, p).Do(t.Context(), netguard.Request{URL: server.URL}); code(err) != failure.TooLarge {
		t.Error(err)
	}
}

func TestCompressedAnswer(t *testing.T) {
	port, p := serveTLS(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		if r.URL.Path == "/empty" {
			w.Header().Set("Content-Encoding", "gzip")
			w.WriteHeader(http.StatusNotModified)
			return
		}
		if r.Header.Get("Accept-Encoding") != "gzip" {
			t.Errorf("Accept-Encoding is %q", r.Header.Get("Accept-Encoding"))
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		io.WriteString(z, strings.Repeat("unpacked ", 1000))
	})
	p.MaxBodyBytes = 9000
	c := client(t, p)
	if resp, err := c.Do(t.Context(), netguard.Request{URL: "https://example.com:" + port}); err != nil || len(resp.Body) != 9000 {
		t.Errorf("%v, %v", resp, err)
	}
	if resp, err := c.Do(t.Context(), netguard.Request{URL: "https://example.com:" + port + "/empty"}); err != nil || len(resp.Body) != 0 || resp.Status != 304 {
		t.Errorf("%v, %v", resp, err)
	}
}

// What the caller sent for one origin does not follow to another, and not back either;
// the operator's credential goes to its host alone.
func TestRedirectDropsHeaders(t *testing.T) {
	type seen struct {
		where  string
		header http.Header
	}
	var got []seen
	note := func(where string, r *http.Request) { got = append(got, seen{where, r.Header.Clone()}) }
	var first, second string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		note("other", r)
		http.Redirect(w, r, first+"/back", http.StatusFound)
	}))
	t.Cleanup(other.Close)
	port, p := serveTLS(t, func(w http.ResponseWriter, r *http.Request) {
		note(r.URL.Path, r)
		switch r.URL.Path {
		case "/":
			http.Redirect(w, r, "/same?key=in-the-query", http.StatusFound)
		case "/same":
			http.Redirect(w, r, second, http.StatusFound)
		}
	})
	first, second = "https://example.com:"+port, other.URL
	p.Hosts = append(p.Hosts, "127.0.0.1:*")
	p.Credentials = []netguard.Credential{{Host: "example.com:*", Header: "X-Operator", Value: "0perator-secret"}}
	_, err := client(t, p).Do(t.Context(), netguard.Request{URL: first + "/", Header: map[string]string{
		"Authorization": "Bearer mine", "Cookie": "a=b", "X-Api-Key": "mine", "Accept": "text/x-mine", "X-Operator": "forged",
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 4 {
		t.Fatalf("%d requests: %v", len(got), got)
	}
	for i, s := range got {
		mine := i < 2
		for _, name := range []string{"Authorization", "Cookie", "X-Api-Key"} {
			if (s.header.Get(name) != "") != mine {
				t.Errorf("%s: %s is %q", s.where, name, s.header.Get(name))
			}
		}
		if s.header.Get("Accept") != "text/x-mine" || s.header.Get("Referer") != "" {
			t.Errorf("%s: Accept %q, Referer %q", s.where, s.header.Get("Accept"), s.header.Get("Referer"))
		}
		if want := map[bool]string{true: "0perator-secret", false: ""}[s.where != "other"]; s.header.Get("X-Operator") != want {
			t.Errorf("%s: X-Operator is %q", s.where, s.header.Get("X-Operator"))
		}
	}
}

func TestRedirectKeepsBodyAtHome(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the other host got %s", r.Method)
	}))
	t.Cleanup(other.Close)
	port, p := serveTLS(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	p.Hosts = append(p.Hosts, "127.0.0.1:*")
	_, err := client(t, p).Do(t.Context(), netguard.Request{Method: http.MethodPost, URL: "https://example.com:" + port, Body: []byte("secret")})
	if code(err) != failure.NotAllowed {
		t.Error(err)
	}
}

// A host that echoes what it was sent does not hand the operator's secret to the caller.
func TestCredentialIsNotShown(t *testing.T) {
	const token, longer = "s3cret/t0ken+==", "s3cret/t0ken+==and-more"
	port, p := serveTLS(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		fmt.Fprint(w, "you sent ", r.Header.Get("Authorization"), " with token ", token, ` {"token": "s3cret\/t0ken+=="} ?token=s3cret%2Ft0ken%2B%3D%3D `, longer)
	})
	p.Secrets = []string{longer}
	p.Credentials = []netguard.Credential{{Host: "example.com:*", Header: "Authorization", Value: "Bearer " + token}}
	c := client(t, p)
	resp, err := c.Do(t.Context(), netguard.Request{URL: "https://example.com:" + port})
	if err != nil {
		t.Fatal(err)
	}
	if all := resp.Header.Get("X-Echo") + string(resp.Body); strings.Contains(all, "s3cret") || strings.Contains(all, "and-more") || strings.Count(all, "[redacted]") != 6 {
		t.Errorf("the answer is %s", all)
	}
	if _, err := c.Do(t.Context(), netguard.Request{URL: "http://example.com:" + port}); code(err) != failure.NotAllowed {
		t.Errorf("the credential went without TLS: %v", err)
	}
}

func TestHeadersAreChecked(t *testing.T) {
	port, p := serveTLS(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
	c := client(t, p)
	for name, header := range map[string]map[string]string{
		"host":         {"Host": "evil.test"},
		"smuggling":    {"transfer-encoding": "chunked"},
		"proxy":        {"Proxy-Authorization": "x"},
		"encoding":     {"Accept-Encoding": "br"},
		"method":       {"X-HTTP-Method-Override": "DELETE"},
		"CRLF":         {"X-A": "a\r\nX-B: b"},
		"DEL":          {"X-A": "a\x7fb"},
		"name":         {"X A": "a"},
		"no name":      {"": "a"},
		"name of CRLF": {"X-A\r\nX-B": "b"},
		"twice":        {"X-A": "a", "x-a": "b"},
		"long":         {"X-A": strings.Repeat("a", 16<<10-2)},
	} {
		_, err := c.Do(t.Context(), netguard.Request{URL: "https://example.com:" + port, Header: header})
		if code(err) != failure.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOwnCertificates(t *testing.T) {
	port, p := serveTLS(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
	p.RootCAs = nil
	_, err := client(t, p).Do(t.Context(), netguard.Request{URL: "https://example.com:" + port})
	if code(err) != failure.Network || !strings.Contains(err.Error(), "certificate") {
		t.Error(err)
	}
}

// The environment's proxy would be connected to instead of the host.
func TestNoProxyFromEnvironment(t *testing.T) {
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		t.Setenv(name, "http://"+proxy.Addr().String())
	}
	port, p := serveTLS(t, func(http.ResponseWriter, *http.Request) {})
	if _, err := client(t, p).Do(t.Context(), netguard.Request{URL: "https://example.com:" + port}); err != nil {
		t.Error(err)
	}
}

func TestCancel(t *testing.T) {
	started := make(chan struct{})
	port, p := serveTLS(t, func(_ http.ResponseWriter, r *http.Request) { close(started); <-r.Context().Done() })
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	_, err := client(t, p).Do(ctx, netguard.Request{URL: "https://example.com:" + port})
	if code(err) != failure.Cancelled || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// reserve takes a port that refuses connections until listen is called, so that nobody
// else can have it meanwhile.
func reserve(t *testing.T) (addr string, listen func() net.Listener) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "listener")
	t.Cleanup(func() { file.Close() })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	addr = fmt.Sprintf("127.0.0.1:%d", bound.(*syscall.SockaddrInet4).Port)
	return addr, func() net.Listener {
		t.Helper()
		if err := syscall.Listen(fd, 16); err != nil {
			t.Fatal(err)
		}
		l, err := net.FileListener(file)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
}

// A host that is down and comes back is reached again by the same client.
func TestHostComesBack(t *testing.T) {
	_, p := serveTLS(t, nil)
	p.Hosts = []string{"127.0.0.1:*"}
	c := client(t, p)
	addr, listen := reserve(t)
	if _, err := c.Do(t.Context(), netguard.Request{URL: "http://" + addr}); code(err) != failure.Network {
		t.Fatalf("while it is down: %v", err)
	}
	listener := listen()
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		http.ReadRequest(bufio.NewReader(conn))
		io.WriteString(conn, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
	}()
	if resp, err := c.Do(t.Context(), netguard.Request{URL: "http://" + addr}); err != nil || resp.Status != 204 {
		t.Errorf("when it is back: %v, %v", resp, err)
	}
}

// Every way to write this machine is refused before a connection, although every host
// and every port are listed.
func TestLoopbackIsRefused(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request arrived") }))
	t.Cleanup(server.Close)
	accepted := atomic.Int64{}
	server.Config.ConnState = func(net.Conn, http.ConnState) { accepted.Add(1) }
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	c := client(t, netguard.Policy{Hosts: []string{"*:*"}, Timeout: time.Minute, Resolver: serveNames(t, map[string][][]string{"me.test": {{"127.0.0.1"}}})})
	for _, host := range []string{
		"127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "017700000001", "0177.0.0.1", "127.0.0.1.", "0", "0.0.0.0",
		"localhost", "LOCALHOST.", "me.test", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]", "[64:ff9b::127.0.0.1]",
		"[2002:7f00:1::]", "[::127.0.0.1]", "[fe80::1]", "①②⑦.0.0.1", "127。0。0。1",
	} {
		_, err := c.Do(t.Context(), netguard.Request{URL: "http://" + host + ":" + port + "/"})
		if got := code(err); got != failure.NotAllowed && got != failure.InvalidArgument {
			t.Errorf("%s: %v", host, err)
		}
	}
	if n := accepted.Load(); n > 0 {
		t.Errorf("there were %d connections", n)
	}
}
