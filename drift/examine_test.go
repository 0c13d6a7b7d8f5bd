package drift_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/drift"
)

// examine has the gate look at the callee.
func (w *world) examine(t testing.TB, announced ...string) drift.Examination {
	t.Helper()
	p, ok := w.client.Probe(calleeAddr)
	if !ok {
		t.Fatal("no peer")
	}
	return w.gate.Examine(t.Context(), p, announced)
}

// An examination asks whatever is remembered, proves every capability, and heals.
func TestExamine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newForeigner(t, contract(t, f(narrow, "")), drift.Options{Retry: time.Hour, MaxRetry: time.Hour})
		s.listen(t)
		if e := s.examine(t); e.Answered || e.Err == nil || e.Live != nil {
			t.Errorf("of a silent peer: %+v", e)
		}
		for form, want := range map[string]string{
			`{}`:                          "neither",
			`{"capabilities_version":7}`:  "CapabilitiesContractError: schema drift: agent://callee: published capabilities: capabilities_version 7",
			`{"capabilities_version":""}`: "CapabilitiesContractError: schema drift: agent://callee: published capabilities: capabilities_version is missing",
		} {
			s.says(publishes(form))
			e := s.examine(t)
			var found *drift.CapabilitiesContractError
			text := ""
			if e.Err != nil {
				text = e.Err.Error()
			}
			if name, ok := strings.CutPrefix(want, "CapabilitiesContractError: "); ok != errors.As(e.Err, &found) || ok != e.Answered || !strings.Contains(text, name) {
				t.Errorf("%s: %+v, want %s", form, e, want)
			}
		}
		// f is refused and other is not offered.
		s.says(publishes(tools("", `"f":{"inputSchema":{"type":"object","required":["b"]}},"z":{}`)))
		e := s.examine(t)
		var found *drift.SchemaDriftError
		if len(e.Findings) != 2 || e.Findings[0].Capability != "other" || e.Findings[1].Capability != "f" || !errors.As(e.Findings[1].Err, &found) ||
			found.Witness == nil || !slices.Equal(e.Unusable, []string{"z"}) || !e.Answered || e.Err != nil {
			t.Errorf("%+v", e)
		}
		if _, err := s.call(`{"a":1}`); !errors.As(err, &found) {
			t.Errorf("a call: %v", err)
		}
		// Mended, it would be called in an hour, or after the next examination.
		s.says(publishes(tools("", `"other":{},`+goodTool)))
		time.Sleep(time.Minute)
		if _, err := s.call(`{"a":1}`); !errors.As(err, &found) {
			t.Errorf("asked again too early: %v", err)
		}
		if e := s.examine(t); e.Findings != nil || e.Err != nil || len(e.Live) != 1 {
			t.Errorf("mended: %+v", e)
		}
		if res, err := s.call(`{"a":1}`); err != nil || res.Unproven != "" {
			t.Errorf("after the examination: %v", err)
		}
	})
}

// An examination asks until it has met every replica.
func TestExamineMeetsEveryReplica(t *testing.T) {
	good, odd := contract(t, f(narrow, "")), contract(t, f(needs, ""))
	d := deploy(t, good, good, drift.Options{})
	d.serve(t, odd, 2)
	e := d.examine(t, good.Digest(), good.Digest(), odd.Digest())
	if len(e.Live) != 2 || len(e.Findings) != 1 || e.Findings[0].Capability != "f" {
		t.Errorf("%+v", e)
	}
	// One that does not exist is looked for in vain, and not for long.
	before := d.bus.Published()
	if e := d.examine(t, "sha256:nobody"); len(e.Live) != 2 || d.bus.Published()-before > 2*questions {
		t.Errorf("%d forms, %d messages", len(e.Live), d.bus.Published()-before)
	}
}

// Without a copy of the peer's file there is nothing to prove.
func TestExamineWithoutAContract(t *testing.T) {
	w := newWorld(t, contract(t, f(narrow, "")), contract(t, f(needs, "")), drift.Options{Mode: drift.Off})
	peer := w.peers[calleeAddr]
	peer.Contract = nil
	w.peers[calleeAddr] = peer
	if e := w.examine(t); e.Err != nil || len(e.Live) != 1 || e.Findings != nil || e.Unusable != nil {
		t.Errorf("%+v", e)
	}
}
