package fleet_test

import (
	"strings"
	"testing"

	"github.com/agentd/agentd/capability"
)

// limits.maxViolations bounds what a member's own contracts and its view of its peers'
// list, whichever validator it has, and no other member's.
func TestMaxViolations(t *testing.T) {
	const closed = "version: 1\nagent: agent://pr-reviewer\ntransports: [{kind: memory, topics: {requests: r}}]\n" +
		"capabilities: [{name: x, inputSchema: {type: array, items: {type: string}}}]\n"
	payload := []byte("[" + strings.Repeat("1,", 149) + "1]")
	for _, validator := range []string{"native", "gojsonschema"} {
		f := starter().with(files{
			"agents/pr-reviewer/agent.yaml":        "name: pr-reviewer\nvalidator: " + validator + "\nlimits: {maxViolations: 2}\n",
			"agents/pr-reviewer/capabilities.yaml": closed,
			"rpc-peers.yaml":                       "version: 1\npeers: [{agent: agent://pr-reviewer, transports: [{kind: memory, topics: {requests: r}}]}]\n",
			"agents/concierge/agent.yaml":          "name: concierge\nvalidator: " + validator + "\n",
		}).load(t)
		for id, listed := range map[string]int{"pr-reviewer": 2, "concierge": 100} {
			member, _ := f.Member(id)
			docs := []*capability.Document{member.Peers[0].Document}
			if id == "pr-reviewer" {
				docs = append(docs, member.Capabilities)
			}
			for _, doc := range docs {
				c, _ := doc.Lookup("x")
				report := c.Input.Check(payload)
				if len(report.Violations) != listed || report.Omitted != 150-listed {
					t.Errorf("%s of %s: %d violations and %d omitted, want %d listed", validator, id, len(report.Violations), report.Omitted, listed)
				}
			}
		}
	}
}
