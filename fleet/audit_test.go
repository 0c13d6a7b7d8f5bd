package fleet_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/agentd/agentd/fleet"
)

// auditOf loads the starter fleet with a block audit for one of its agents.
func auditOf(t *testing.T, text string) (fleet.Audit, error) {
	t.Helper()
	f, err := fleet.Load(starter().with(files{"agents/concierge/agent.yaml": "name: concierge\n" + text + "\n"}).root(t), fleet.LoadOptions{})
	if err != nil {
		return fleet.Audit{}, err
	}
	m, _ := f.Member("concierge")
	return m.Agent.Audit, nil
}

func TestAudit(t *testing.T) {
	a, err := auditOf(t, "")
	if err != nil || a.Witnesses != nil || a.Captures("review-pr") || a.CaptureBytes != fleet.DefaultCaptureBytes {
		t.Errorf("by default: %+v, %v", a, err)
	}
	a, err = auditOf(t, "audit: {witnesses: [agent://pr-reviewer], capture: [review-pr], captureMaxBytes: 100, onFailure: open, exporters: []}")
	if err != nil || len(a.Witnesses) != 1 || a.Witnesses[0].Address != "agent://pr-reviewer" || a.CaptureBytes != 100 || !a.FailOpen ||
		!a.Captures("review-pr") || a.Captures("other") {
		t.Errorf("got %+v, %v", a, err)
	}
	for _, test := range []struct{ text, want string }{
		{"audit: {witnesses: [librarian]}", "agent must be"},
		{"audit: {witnesses: [agent://pr-reviewer, agent://pr-reviewer]}", "listed twice"},
		{"audit: {witnesses: [agent://nobody]}", "agent://nobody is no peer"},
		{"audit: {witnesses: [{keys: [" + witnessKey + "]}]}", `"agent"`},
		{"audit: {witnesses: [{agent: agent://pr-reviewer, keys: []}]}", "at least one key of the witness"},
		{"audit: {witnesses: [{agent: agent://pr-reviewer, keys: [nonsense]}]}", `"nonsense" is no verifier key`},
		{"audit: {witnesses: [{agent: agent://pr-reviewer, key: x}]}", `did you mean "keys"`},
		{"audit: {witnesses: [agent://pr-reviewer], witnessQuorum: 2}", "witnessQuorum"},
		{"audit: {witnessQuorum: 1}", "there are no witnesses"},
		{"audit: {witnesses: [agent://concierge]}", "agent://concierge is no peer"},
		{"audit: {witness: [agent://pr-reviewer]}", `did you mean "witnesses"`},
		{"audit: {captureMaxBytes: 1000000000}", "captureMaxBytes"},
		{"audit: {onFailure: shut}", "closed"},
		{"audit: {capture: all}", "expected a list"},
	} {
		_, err := auditOf(t, test.text)
		var faults *fleet.LoadError
		if !errors.As(err, &faults) || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "agent.yaml:2:") {
			t.Errorf("%s: %v", test.text, err)
		}
	}
}

// witnessKey is a line of the .pub file of an audit log.
const witnessKey = "agentd.audit/crashed/daf352d0f998aa55+bc3eb56e+AZdYCgcYGMwYgpyV1xRUAR1KM6A2CzOUGJIQjH7n8OQg"

// A witness may be pinned to the keys that it signs with.
func TestPinnedWitness(t *testing.T) {
	t.Parallel()
	a, err := auditOf(t, "audit: {witnessQuorum: 1, witnesses: [{agent: agent://pr-reviewer, keys: ["+witnessKey+"]}]}")
	if err != nil || a.WitnessQuorum != 1 || len(a.Witnesses) != 1 || a.Witnesses[0].Address != "agent://pr-reviewer" || !slices.Equal(a.Witnesses[0].Keys, []string{witnessKey}) {
		t.Errorf("%+v, %v", a, err)
	}
}
