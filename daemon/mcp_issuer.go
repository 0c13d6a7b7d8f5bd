package daemon

import "github.com/agentd/agentd/daemon/health"

// issuerTrouble lists the issuer that the files name, if its keys cannot be had by one of the servers
// of the face. Each logs that as it begins and ends. A server that a reload has replaced is not
// asked: nobody would say of it that it has healed.
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
	for _, s := range f.serving() {
		since, cause := s.current.Load().handler.IssuerFault()
		if cause == nil {
			continue
		}
		return []health.Condition{{
			Kind: health.Issuer, Subject: o.Issuer, Code: "away", Advisory: true, Since: since, Cause: cause.Error(),
			Effect: "MCP clients whose tokens have keys that are not known yet are let in no more", Remedy: "it is asked again by itself; see oauth under mcp of agent.yaml",
		}}
	}
	return nil
}
