package top

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/agentd/agentd/daemon/control"
)

// modelTokens are what one language model has used for a capability.
type modelTokens struct {
	// ModelTokens are the counts since the agent started.
	control.ModelTokens
	// InputPerSecond and OutputPerSecond are the tokens of the interval, a second.
	InputPerSecond  float64 `json:"inputPerSecond"`
	OutputPerSecond float64 `json:"outputPerSecond"`
}

// modelsOf compares two counts. One that has become smaller began again.
func modelsOf(old, now []control.ModelTokens, seconds float64) (all []modelTokens) {
	for _, n := range now {
		one := modelTokens{ModelTokens: n}
		at := slices.IndexFunc(old, func(b control.ModelTokens) bool {
			return b.Capability == n.Capability && b.Provider == n.Provider && b.Model == n.Model && b.Operation == n.Operation
		})
		before := control.ModelTokens{}
		if at >= 0 && old[at].Requests <= n.Requests {
			before = old[at]
		}
		if seconds > 0 {
			one.InputPerSecond = float64(n.Input-min(before.Input, n.Input)) / seconds
			one.OutputPerSecond = float64(n.Output-min(before.Output, n.Output)) / seconds
		}
		all = append(all, one)
	}
	return all
}

// models is a table of the language models that skills report, those first that use most.
func (l look) models(s *snapshot) []string {
	type entry struct {
		agent *agent
		model *modelTokens
	}
	var all []entry
	for i := range s.Agents {
		for j := range s.Agents[i].Models {
			all = append(all, entry{&s.Agents[i], &s.Agents[i].Models[j]})
		}
	}
	slices.SortStableFunc(all, func(x, y entry) int {
		if l.order == byName {
			return cmp.Or(strings.Compare(x.agent.Agent, y.agent.Agent), strings.Compare(x.model.Capability, y.model.Capability))
		}
		return cmp.Or(cmp.Compare(y.model.InputPerSecond+y.model.OutputPerSecond, x.model.InputPerSecond+x.model.OutputPerSecond),
			cmp.Compare(y.model.Input+y.model.Output, x.model.Input+x.model.Output))
	})
	rows := make([][]string, len(all))
	for i, e := range all {
		in, out := unknown, unknown
		if e.agent.Seconds > 0 {
			in, out = rate(e.model.InputPerSecond), rate(e.model.OutputPerSecond)
		}
		m := e.model
		rows[i] = []string{
			e.agent.Agent, m.Capability, m.Provider, m.Model, m.Operation, in, out,
			strconv.FormatUint(m.Requests, 10), strconv.FormatUint(m.Input, 10), strconv.FormatUint(m.Output, 10),
		}
	}
	return table([]string{"AGENT", "CAPABILITY", "PROVIDER", "MODEL", "OPERATION", "IN/S", "OUT/S", "REQUESTS", "INPUT", "OUTPUT"}, rows)
}
