package natsauth

import (
	"slices"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
)

// bucketSubjects are the subjects to which an agent publishes to create and use one
// key-value bucket (ADR-8). Deleting it is not among them.
func bucketSubjects(bucket string) []string {
	stream := "KV_" + bucket
	return []string{
		"$JS.API.INFO", "$JS.API.STREAM.CREATE." + stream, "$JS.API.STREAM.UPDATE." + stream, "$JS.API.STREAM.INFO." + stream,
		"$JS.API.DIRECT.GET." + stream + ".>", "$KV." + bucket + ".>",
	}
}

// durableCalleeSubjects are the subjects to which an agent publishes to have requests
// to it kept: those of its streams and its consumer, its answers and its dead letters.
// requests is the subject of requests.
func durableCalleeSubjects(id, requests string) []string {
	queue, results, dead := RequestsStream(id), ResultsStream(id), DeadStream(id)
	all := []string{
		"$JS.API.CONSUMER.CREATE." + queue + ".>", "$JS.API.CONSUMER.MSG.NEXT." + queue + ".>", "$JS.ACK." + queue + ".>",
		"$JS.API.DIRECT.GET." + results + ".>", "$JS.API.STREAM.PURGE." + results,
		"$JS.API.STREAM.MSG.GET." + dead, "$JS.API.DIRECT.GET." + dead, "$JS.API.STREAM.MSG.DELETE." + dead,
		"agentd.results." + ServiceName(id) + ".>", DeadSubject(id), RequestsSubject(requests),
	}
	for _, stream := range []string{queue, results, dead} {
		all = append(all, "$JS.API.STREAM.CREATE."+stream, "$JS.API.STREAM.INFO."+stream)
	}
	return all
}

// durableCallerSubjects are the subjects to which an agent publishes to find out
// whether a peer keeps requests, and to fetch the peer's answers. The stream has the
// answers to all callers: the permission ends in the caller's own subject.
func durableCallerSubjects(id, peer string) []string {
	return []string{"$JS.API.STREAM.INFO." + RequestsStream(peer), "$JS.API.DIRECT.GET." + ResultsStream(peer) + "." + ResultsSubject(peer, id) + ".*"}
}

// probeSubjects are the subjects on which a callee checks whether its callers are
// still connected, see Conn.Listening of package nats. No reply has such a subject.
func probeSubjects(f *fleet.Fleet, callee *fleet.Member, opts Options) (all []string) {
	for _, m := range f.Members {
		if p, ok := m.Peer(callee.Address); ok && len(natsSubjects(p.Transports)) > 0 && opts.allows(m.Address, callee.Address) {
			all = append(all, InboxPrefix(m.ID)+".*.alive")
		}
	}
	return all
}

// sharesLimits reports whether the member's replicas count calls together.
func sharesLimits(m *fleet.Member) bool {
	return slices.ContainsFunc(m.Capabilities.Capabilities, func(c *capability.Capability) bool {
		return c.RateLimit != nil && c.RateLimit.Shared
	})
}

// witnesses reports whether an agent is a witness of the member's audit log.
func witnesses(m *fleet.Member, a envelope.Address) bool {
	return slices.ContainsFunc(m.Agent.Audit.Witnesses, func(w fleet.Witness) bool { return w.Address == a })
}

// mayKeepRequests reports whether a peer may keep requests. One whose contract is not
// known here may.
func mayKeepRequests(d *capability.Document) bool { return d == nil || d.KeepsRequests() }

// requestSubjects are the subjects where a member accepts requests.
func requestSubjects(m *fleet.Member) []string {
	if m.ClientOnly() {
		return nil
	}
	return natsSubjects(m.Capabilities.Transports)
}

// natsSubjects are the subjects of requests among transports, each once.
func natsSubjects(transports []capability.TransportSpec) []string {
	var out []string
	for _, t := range transports {
		if t.Kind == capability.NATS && !slices.Contains(out, t.Requests) {
			out = append(out, t.Requests)
		}
	}
	return out
}
