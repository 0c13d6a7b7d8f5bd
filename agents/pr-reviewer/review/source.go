package review

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// Defaults of [Source].
const (
	DefaultMaxBytes = 8 << 20
	DefaultTimeout  = 20 * time.Second
)

// maxRedirects bounds the redirects that a fetch follows. GitHub needs one.
const maxRedirects = 5

// A Source fetches diffs by URL. The zero Source fetches over https: and http:
// from public addresses. It is safe for concurrent use.
//
// Requests are made by a caller's order, so the source is careful where they
// go: a host that resolves to a loopback, private, link-local or otherwise
// not public address is refused unless AllowPrivate is set. The check is made
// on the address that is dialled, for every redirect too, so that a name that
// changes its meaning gains nothing. Proxy settings of the environment are
// ignored, for a proxy would dial unchecked.
type Source struct {
	// Root is the folder that file: URLs are relative to. Empty means that
	// they are refused.
	Root string
	// AllowPrivate admits hosts on loopback and private networks.
	AllowPrivate bool
	// MaxBytes bounds a diff, after decompression. 0 means [DefaultMaxBytes].
	MaxBytes int64
	// Timeout bounds one fetch from the name lookup to the last byte. 0 means
	// [DefaultTimeout].
	Timeout time.Duration
}

// A FetchError says why there is no diff.
type FetchError struct {
	// Message is fit for the caller of the review: it names no addresses and
	// files but those that the caller gave.
	Message string
	// Temporary says that the same URL may work later.
	Temporary bool
	// Cause is the underlying error, for the log. It may be nil.
	Cause error
}

func (e *FetchError) Error() string {
	if e.Cause == nil {
		return e.Message
	}
	return e.Message + ": " + e.Cause.Error()
}

// Unwrap returns the cause.
func (e *FetchError) Unwrap() error { return e.Cause }

func refuse(format string, args ...any) error {
	return &FetchError{Message: fmt.Sprintf(format, args...)}
}

// Fetch returns the diff at prURL, which is one of
//
//   - https: or http: with the address of a diff, or of a pull request on
//     GitHub or a merge request on GitLab, whose diff is then taken
//   - file: with the path of a .patch or .diff file below Root, as in
//     file:patches/fix.patch; no symbolic link may lead out of Root
//
// The error is a [*FetchError].
func (s *Source) Fetch(ctx context.Context, prURL string) ([]byte, error) {
	u, err := url.Parse(prURL)
	if err != nil {
		return nil, refuse("prUrl is not a URL")
	}
	switch u.Scheme {
	case "https", "http":
		return s.fetchHTTP(ctx, u)
	case "file":
		return s.readFile(u)
	case "":
		return nil, refuse("prUrl needs a scheme: https:, http: or file:")
	}
	return nil, refuse("prUrl has the scheme %q; only https:, http: and file: are allowed", u.Scheme)
}

func (s *Source) maxBytes() int64 {
	if s.MaxBytes > 0 {
		return s.MaxBytes
	}
	return DefaultMaxBytes
}

// readAll reads a diff of at most maxBytes.
func (s *Source) readAll(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, s.maxBytes()+1))
	if err != nil {
		return nil, &FetchError{Message: "the diff could not be read to its end", Temporary: true, Cause: err}
	}
	if int64(len(data)) > s.maxBytes() {
		return nil, s.tooLarge()
	}
	return data, nil
}

func (s *Source) tooLarge() error {
	return refuse("the diff is larger than %d bytes; split the pull request", s.maxBytes())
}

// readFile reads a file: URL. os.Root keeps the path inside, symbolic links
// included. Only .patch and .diff files are read, so that the errors of a
// review tell nothing about other files.
func (s *Source) readFile(u *url.URL) ([]byte, error) {
	if s.Root == "" {
		return nil, refuse("file: URLs need the fleet's folder, which is not known here")
	}
	name, err := s.fileName(u)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(s.Root)
	if err != nil {
		return nil, &FetchError{Message: "the fleet's folder cannot be opened", Cause: err}
	}
	defer root.Close()
	// Non-blocking, or opening a named pipe would wait for its writer.
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, refuse("there is no file %s in the fleet's folder", name)
	}
	if err != nil {
		return nil, &FetchError{Message: fmt.Sprintf("the file %s cannot be opened", name), Cause: err}
	}
	defer func() { _ = file.Close() }() // a reader loses nothing
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, &FetchError{Message: name + " is not a regular file", Cause: err}
	}
	return s.readAll(file)
}

// fileName turns a file: URL into a path relative to Root.
func (s *Source) fileName(u *url.URL) (string, error) {
	if u.Host != "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", refuse("a file: URL has a path and nothing else, as in file:patches/fix.patch")
	}
	name := u.Path
	if u.Opaque != "" {
		var err error
		if name, err = url.PathUnescape(u.Opaque); err != nil {
			return "", refuse("the path of the file: URL is badly escaped")
		}
	}
	// An absolute path must begin with Root as it is given; what remains
	// absolute is refused like any other way out.
	name = path.Clean(strings.TrimPrefix(name, strings.TrimSuffix(s.Root, "/")+"/"))
	if !fs.ValidPath(name) {
		return "", refuse("the path of the file: URL leaves the fleet's folder")
	}
	if ext := path.Ext(name); ext != ".patch" && ext != ".diff" {
		return "", refuse("a file: URL must name a .patch or .diff file")
	}
	return name, nil
}

var (
	githubPull   = regexp.MustCompile(`^/[^/]+/[^/]+/pull/\d+`)
	gitlabMerge  = regexp.MustCompile(`^/.+/-/merge_requests/\d+`)
	pullSubpages = regexp.MustCompile(`^(?:/|/files|/changes|/diffs|/commits|/checks|/pipelines)*$`)
)

// diffURL rewrites the page of a pull or merge request to its diff.
func diffURL(u *url.URL) *url.URL {
	head := ""
	if host := strings.ToLower(u.Hostname()); host == "github.com" || host == "www.github.com" {
		head = githubPull.FindString(u.Path)
	} else {
		head = gitlabMerge.FindString(u.Path)
	}
	if head == "" || !pullSubpages.MatchString(u.Path[len(head):]) {
		return u
	}
	diff := *u
	diff.Path, diff.RawPath, diff.RawQuery, diff.Fragment = head+".diff", "", "", ""
	return &diff
}

// checkWeb refuses URLs that must not be requested, first or by redirect.
func checkWeb(u *url.URL) error {
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return refuse("a redirect leads to the scheme %q; only https: and http: are followed", u.Scheme)
	case u.User != nil:
		return refuse("prUrl must not hold a user name or password; they would end up in logs")
	case u.Hostname() == "":
		return refuse("prUrl has no host")
	}
	return nil
}

// errNotPublic is the cause of a refused connection.
var errNotPublic = errors.New("the address is not public")

func (s *Source) fetchHTTP(ctx context.Context, u *url.URL) ([]byte, error) {
	if err := checkWeb(u); err != nil {
		return nil, err
	}
	timeout := s.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, diffURL(u).String(), nil)
	if err != nil {
		return nil, &FetchError{Message: "prUrl cannot be requested", Cause: err}
	}
	req.Header.Set("Accept", "text/x-diff, text/x-patch, text/plain;q=0.9, */*;q=0.1")
	req.Header.Set("User-Agent", "agentd-pr-reviewer")
	resp, err := s.client().Do(req)
	if err != nil {
		return nil, connectError(ctx, u, err)
	}
	defer resp.Body.Close()
	if err := checkResponse(resp); err != nil {
		return nil, err
	}
	if resp.ContentLength > s.maxBytes() {
		return nil, s.tooLarge()
	}
	return s.readAll(resp.Body)
}

// client returns a client that is used for one fetch.
func (s *Source) client() *http.Client {
	dialer := &net.Dialer{}
	if !s.AllowPrivate {
		dialer.Control = func(_, address string, _ syscall.RawConn) error {
			if addr, err := netip.ParseAddrPort(address); err != nil || !isPublic(addr.Addr()) {
				return errNotPublic
			}
			return nil
		}
	}
	return &http.Client{
		Transport: &http.Transport{
			DialContext:            dialer.DialContext,
			DisableKeepAlives:      true, // nothing of it outlives the fetch
			ForceAttemptHTTP2:      true,
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			switch {
			case len(via) > maxRedirects:
				return refuse("prUrl leads to more than %d redirects", maxRedirects)
			case via[0].URL.Scheme == "https" && req.URL.Scheme == "http":
				return refuse("a redirect leads from https: to http:")
			}
			return checkWeb(req.URL)
		},
	}
}

// connectError explains a request that got no response.
func connectError(ctx context.Context, u *url.URL, err error) error {
	var refused *FetchError
	var lookup *net.DNSError
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.Is(err, errNotPublic):
		return &FetchError{Message: u.Hostname() + " is not on the public network, and the reviewer is not allowed to look elsewhere", Cause: err}
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &FetchError{Message: u.Hostname() + " did not answer in time", Temporary: true, Cause: err}
	case ctx.Err() != nil:
		return &FetchError{Message: "the review was cancelled", Temporary: true, Cause: err}
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return &FetchError{Message: "there is no host " + u.Hostname(), Cause: err}
	}
	return &FetchError{Message: u.Hostname() + " cannot be reached", Temporary: true, Cause: err}
}

// checkResponse refuses all but a success that is not a web page.
func checkResponse(resp *http.Response) error {
	host, status := resp.Request.URL.Hostname(), resp.StatusCode
	switch {
	case status == http.StatusNotFound, status == http.StatusUnauthorized, status == http.StatusForbidden:
		return refuse("%s answered HTTP %d: there is no such diff, or it is not public", host, status)
	case status == http.StatusTooManyRequests, status >= 500:
		return &FetchError{Message: fmt.Sprintf("%s answered HTTP %d", host, status), Temporary: true}
	case status != http.StatusOK:
		return refuse("%s answered HTTP %d instead of a diff", host, status)
	case strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html"):
		return refuse("%s answered with a web page instead of a diff", host)
	}
	return nil
}

// notPublic lists what [netip.Addr]'s own predicates leave out, by the IANA
// special-purpose address registries. The last five embed IPv4 addresses and
// would reach private ones through a translator.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),       // this network, RFC 791
	netip.MustParsePrefix("100.64.0.0/10"),   // shared by carriers, RFC 6598
	netip.MustParsePrefix("192.0.0.0/24"),    // protocol assignments, RFC 6890
	netip.MustParsePrefix("192.0.2.0/24"),    // documentation, RFC 5737
	netip.MustParsePrefix("198.18.0.0/15"),   // benchmarks, RFC 2544
	netip.MustParsePrefix("198.51.100.0/24"), // documentation, RFC 5737
	netip.MustParsePrefix("203.0.113.0/24"),  // documentation, RFC 5737
	netip.MustParsePrefix("240.0.0.0/4"),     // reserved, RFC 1112
	netip.MustParsePrefix("100::/64"),        // discard, RFC 6666
	netip.MustParsePrefix("2001:db8::/32"),   // documentation, RFC 3849
	netip.MustParsePrefix("fec0::/10"),       // site-local, RFC 3879
	netip.MustParsePrefix("::/96"),           // IPv4-compatible, RFC 4291
	netip.MustParsePrefix("2001::/23"),       // protocol assignments with Teredo, RFC 2928
	netip.MustParsePrefix("64:ff9b::/96"),    // NAT64, RFC 6052
	netip.MustParsePrefix("64:ff9b:1::/48"),  // local NAT64, RFC 8215
	netip.MustParsePrefix("2002::/16"),       // 6to4, RFC 3056
}

// isPublic tells whether addr is an ordinary address of the internet.
func isPublic(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	if !addr.IsGlobalUnicast() || addr.IsPrivate() {
		return false
	}
	for _, prefix := range notPublic {
		if prefix.Contains(addr) {
			return false
		}
	}
	return true
}
