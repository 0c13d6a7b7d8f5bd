package control

import (
	"fmt"
	"net/http"
	"strings"
)

// Codes of requests that no handler takes, or none takes now.
const (
	codeNotReady         = "not-ready"
	codeNotFound         = "not-found"
	codeMethodNotAllowed = "method-not-allowed"
)

// A router is a mux whose own answers are those of the API: a client that reads
// {error: {code, message}} from every other response should not get plain text.
type router struct{ *http.ServeMux }

// ServeHTTP implements [http.Handler].
func (m router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	handler, pattern := m.Handler(r)
	if pattern != "" {
		m.ServeMux.ServeHTTP(w, r) // which also sets the path's values
		return
	}
	// The mux knows which methods a path has, and lists them in its own response.
	own := mute{header: http.Header{}}
	handler.ServeHTTP(&own, r)
	if allow := own.header.Get("Allow"); own.status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", allow)
		writeFault(w, own.status, codeMethodNotAllowed, fmt.Sprintf("%s takes %s, not %s", r.URL.Path, strings.ReplaceAll(allow, ", ", " or "), r.Method))
		return
	}
	writeFault(w, http.StatusNotFound, codeNotFound, fmt.Sprintf("this API has no path %.200q", r.URL.Path))
}

// mute takes a response and keeps its header.
type mute struct {
	header http.Header
	status int
}

func (m *mute) Header() http.Header { return m.header }

func (m *mute) WriteHeader(status int) { m.status = status }

func (m *mute) Write(data []byte) (int, error) { return len(data), nil }
