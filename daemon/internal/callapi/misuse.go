package callapi

import (
	"fmt"
	"net/http"
	"sync"
)

// maxMisuses bounds what is told apart of that which clients ask for and may not.
const maxMisuses = 256

// Misuses count requests for what only an operator may ask for, so that the log has few lines about
// them: a client that is newer than its agent may ask for the same with each of its calls. The
// zero value is ready. It is safe for concurrent use.
type Misuses struct {
	mu    sync.Mutex
	times map[misuse]int64 // guarded by mu
}

// A misuse is what is counted by itself.
type misuse struct{ who, asked string }

// Note counts a request of somebody, whose names are few. tell is set for the first of a kind, and
// then each time that their number has doubled. Once there are too many kinds, what the same one
// asks for besides counts as one.
func (m *Misuses) Note(who string, r *http.Request) (asked string, times int64, tell bool) {
	asked = fmt.Sprintf("%s %.200q", r.Method, r.URL.Path)
	kind := misuse{who, asked}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.times == nil {
		m.times = map[misuse]int64{}
	}
	if _, known := m.times[kind]; !known && len(m.times) >= maxMisuses {
		kind.asked = ""
	}
	m.times[kind]++
	n := m.times[kind]
	return asked, n, n&(n-1) == 0
}
