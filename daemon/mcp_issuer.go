package daemon

import (
	"time"

	"github.com/agentd/agentd/daemon/health"
)

// An issuerFault is why the keys of an authorization server cannot be had.
type issuerFault struct {
	cause string
	since time.Time
}

// issuerReported notes that the keys of an issuer cannot be had, or can again. The server of the
// face logs both.
func (f *mcpFace) issuerReported(issuer string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		delete(f.issuers, issuer)
		return
	}
	f.issuers[issuer] = issuerFault{err.Error(), time.Now()}
}

// issuerTrouble lists the issuer that the files name, if its keys cannot be had.
func (f *mcpFace) issuerTrouble() []health.Condition {
	if f == nil {
		return nil
	}
	o := f.d.Member().Agent.MCP.OAuth
	if o == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	fault, ok := f.issuers[o.Issuer]
	if !ok {
		return nil
	}
	return []health.Condition{{
		Kind: health.Issuer, Subject: o.Issuer, Code: "away", Advisory: true, Since: fault.since, Cause: fault.cause,
		Effect: "MCP clients whose tokens have keys that are not known yet are let in no more", Remedy: "it is asked again by itself; see oauth under mcp of agent.yaml",
	}}
}
