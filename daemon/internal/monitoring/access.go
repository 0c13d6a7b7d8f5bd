package monitoring

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// ServeHTTP implements [http.Handler].
func (m *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := m.current.Load()
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	trusted := now.Token != "" && now.has(r)
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD are served here", http.StatusMethodNotAllowed)
		return
	case !trusted && (!now.knows(r) || fromPage(r)):
		http.Error(w, "this Host is not served here: name the server by its IP address, by one of monitoring.hosts, or send the token", http.StatusForbidden)
		return
	}
	// Who is on this machine, or has the token, may know why an agent is not ready.
	why := trusted || arrivedAtLoopback(r) || now.Token == ""
	switch path := r.URL.Path; {
	case path == "/livez":
		m.probes.live(w, r)
	case path == "/readyz":
		m.probes.ready(w, r, why)
	case path == "/startupz":
		m.probes.startup(w, r)
	case path == "/metrics" || now.Profiles && strings.HasPrefix(path, "/debug/pprof/"):
		if now.Token != "" && !trusted {
			w.Header().Set("WWW-Authenticate", `Bearer realm="agentd"`)
			http.Error(w, "the token of monitoring.token is required", http.StatusUnauthorized)
			return
		}
		if path == "/metrics" {
			m.metrics.ServeHTTP(w, r)
			return
		}
		m.profiles.ServeHTTP(w, r)
	default:
		http.NotFound(w, r)
	}
}

// has reports whether a request has the token. It compares digests: how long that takes says
// nothing about the token.
func (s *setting) has(r *http.Request) bool {
	headers := r.Header.Values("Authorization")
	if len(headers) != 1 {
		return false
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	got := sha256.Sum256([]byte(token))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(got[:], s.digest[:]) == 1
}

// knows reports whether a request names the server as its operators do. A web page cannot choose
// the Host of its requests: one that has had its own name resolve to this address (DNS rebinding)
// sends that name. An address is no name that could be made to resolve.
func (s *setting) knows(r *http.Request) bool {
	name, port := r.Host, ""
	if host, p, err := net.SplitHostPort(r.Host); err == nil {
		name, port = host, p
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if _, err := netip.ParseAddr(name); err == nil || name == "localhost" && arrivedAtLoopback(r) {
		return true
	}
	return slices.ContainsFunc(s.Hosts, func(known string) bool {
		known = strings.ToLower(known)
		return known == name || port != "" && known == name+":"+port
	})
}

// fromPage reports whether a web page of another origin has sent a request. No page reads what is
// here, and a scraper has neither header.
func fromPage(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return r.Header.Get("Origin") != "" || site != "" && site != "none" // none is a person's own address bar
}

func arrivedAtLoopback(r *http.Request) bool {
	addr, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return addr != nil && loopback(addr)
}

func loopback(addr net.Addr) bool {
	at, err := netip.ParseAddrPort(addr.String())
	return err == nil && at.Addr().Unmap().IsLoopback()
}
