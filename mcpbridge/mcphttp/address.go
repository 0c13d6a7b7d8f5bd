package mcphttp

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// addresses decides from where the endpoint may be reached, before anybody is asked for a token.
type addresses struct {
	hosts   []string
	origins []string
	cross   *http.CrossOriginProtection
}

func newAddresses(hosts, origins []string) *addresses {
	a := &addresses{origins: origins, cross: http.NewCrossOriginProtection()}
	for _, h := range hosts {
		a.hosts = append(a.hosts, strings.ToLower(h))
	}
	for _, o := range origins {
		_ = a.cross.AddTrustedOrigin(o) // checked with the configuration
	}
	return a
}

// Check reports whether the endpoint can be served at an address. A loopback one takes nothing;
// others take TLS, the names of the host, and a token from everybody.
func (h *Handler) Check(addr net.Addr, tls bool) error {
	return check(addr, tls, h.addresses, h.auth.Load())
}

func check(addr net.Addr, tls bool, a *addresses, auth *authenticator) error {
	switch {
	case loopback(addr):
		return nil
	case !tls:
		return fmt.Errorf("%v is not a loopback address: it takes TLS", addr)
	case len(a.hosts) == 0:
		return fmt.Errorf("%v is not a loopback address: it takes the names under which it is reached (hosts)", addr)
	case !auth.takesTokens():
		return fmt.Errorf("%v is not a loopback address: it takes tokens or an OAuth issuer", addr)
	}
	return nil
}

// refuse returns why a request is refused, or nil. Every request is judged, whatever its method:
// a stream that a page opens by GET is worth as much as a call.
func (a *addresses) refuse(r *http.Request) error {
	local := arrivedAtLoopback(r)
	if !local && r.TLS == nil {
		return errors.New("TLS is required")
	}
	name, port := splitHost(r.Host)
	known := local && loopbackName(name)
	for _, host := range a.hosts {
		n, p := splitHost(host)
		known = known || n == name && (p == "" || p == port)
	}
	if !known {
		return errors.New("this Host is not served here")
	}
	// Package http lets methods pass that are safe by themselves. None is here.
	judged := *r
	judged.Method = http.MethodPost
	if a.cross.Check(&judged) != nil {
		return errors.New("this Origin is not allowed")
	}
	return nil
}

// share lets the pages of the listed origins see answers, which a browser keeps from them
// otherwise.
func (a *addresses) share(w http.ResponseWriter, r *http.Request) {
	w.Header().Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if origin == "" || !slices.Contains(a.origins, origin) {
		return
	}
	w.Header().Set("Access-Control-Allow-Origin", origin)
	w.Header().Set("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate, Retry-After")
	if r.Method == http.MethodOptions {
		w.Header().Set("Access-Control-Allow-Methods", allowed)
		w.Header().Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
		w.Header().Set("Access-Control-Max-Age", "600")
	}
}

// arrivedAtLoopback reports whether a request reached this machine at an address that only the
// machine itself can reach.
func arrivedAtLoopback(r *http.Request) bool {
	addr, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return addr != nil && loopback(addr)
}

// fromThisMachine reports whether a request can be trusted to come from a program here: no
// proxy has brought it, as far as one can tell, and no page by a name of its own.
func fromThisMachine(r *http.Request) bool {
	for _, forwarded := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"} {
		if r.Header.Get(forwarded) != "" {
			return false
		}
	}
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	name, _ := splitHost(r.Host)
	return err == nil && remote.Addr().Unmap().IsLoopback() && arrivedAtLoopback(r) && loopbackName(name)
}

func loopback(addr net.Addr) bool {
	at, err := netip.ParseAddrPort(addr.String())
	return err == nil && at.Addr().Unmap().IsLoopback()
}

func loopbackName(name string) bool {
	if name == "localhost" {
		return true
	}
	at, err := netip.ParseAddr(name)
	return err == nil && at.Unmap().IsLoopback()
}

// onlyOnce refuses a second one of the headers that decide something. Two of one are two opinions: what
// stands in front of this handler may have acted on the other one.
func onlyOnce(header http.Header) error {
	for name, values := range header {
		if len(values) < 2 {
			continue
		}
		switch {
		case strings.HasPrefix(name, "Mcp-"), name == "Authorization", name == "Origin", name == "Content-Type", name == "Last-Event-Id", name == "Sec-Fetch-Site":
			return fmt.Errorf("header %.64s occurs more than once", name)
		}
	}
	return nil
}
