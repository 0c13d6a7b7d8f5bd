package metrics

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/rpc"
)

// used counts what models have used for a capability, by their names.
func used(m *Models) map[string]control.ModelTokens {
	calls := NewCalls()
	calls.Know(Known{Served: []string{"ask"}})
	all := map[string]control.ModelTokens{}
	for _, t := range m.Counts(calls) {
		all[t.Model] = t
	}
	return all
}

// A capability whose skill makes up a name for each request has few series at any time, and few new
// ones over time. A model in use gets its own, also after them, and keeps it.
func TestModelNamesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewModels()
		observe := func(name string) {
			m.Observe("ask", &rpc.ModelUsage{Provider: "p", Model: name, Operation: "chat", InputTokens: 10, OutputTokens: 1})
		}
		names := map[string]bool{}
		for i := range 48 * 60 { // two days
			observe(fmt.Sprint("made-up-", i))
			observe("old")
			if i >= 60 {
				observe("new")
			}
			now := used(m)
			if len(now) > maxModels+1 {
				t.Fatalf("%d names", len(now))
			}
			for name := range now {
				names[name] = true
			}
			time.Sleep(time.Minute)
		}
		now := used(m)
		if old := now["old"]; old.Requests != 48*60 || old.Input != 48*60*10 || old.Output != 48*60 {
			t.Errorf("the one in use from the beginning has %+v", old)
		}
		if n := now["new"].Requests; n < 46*60 {
			t.Errorf("the one in use since the first hour has %d requests by its name", n)
		}
		if _, ok := now[Other]; !ok || len(names) > 2*maxModels+1 {
			t.Errorf("%d names over time", len(names))
		}
	})
}

// A model that its skill calls other is counted with the others.
func TestModelCalledOther(t *testing.T) {
	m := NewModels()
	for range 2 {
		m.Observe("ask", &rpc.ModelUsage{Provider: Other, Model: Other, Operation: Other, InputTokens: 1})
		for i := range maxModels + 1 {
			m.Observe("ask", &rpc.ModelUsage{Provider: "p", Model: fmt.Sprint(i), Operation: "chat", InputTokens: 1})
		}
	}
	if all := used(m); len(all) != maxModels+1 || all[Other].Requests != 4 {
		t.Errorf("%d names, %+v", len(all), all[Other])
	}
}
