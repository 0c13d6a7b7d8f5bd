package registry

import "time"

// A Trouble is something wrong with tools that lasts, and that their server expects to end
// without a reload.
type Trouble struct {
	// Subject is what is in trouble, such as a server that the tools depend on.
	Subject string
	// Code distinguishes causes, and Cause says why, for the operator.
	Code, Cause string
	// Tools are the keys of those that cannot be called meanwhile.
	Tools []string
	Since time.Time
}

// OnTrouble adds something that reports troubles. It is called at any time, and returns at
// once.
func (s *Server) OnTrouble(f func() []Trouble) { s.troubles = append(s.troubles, f) }

// Troubles lists what is wrong with tools now.
func (r *Resolved) Troubles() (all []Trouble) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, s := range r.servers {
		for _, f := range s.troubles {
			all = append(all, f()...)
		}
	}
	return all
}
