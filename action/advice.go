package action

import (
	"fmt"

	"github.com/agentd/agentd/schema"
)

// Advice returns what a good action has and this one lacks, in sentences. None of it
// keeps an action from being registered.
func (a Action) Advice() []string {
	var all []string
	if a.Description == "" {
		all = append(all, "it has no description: people and models have to guess what it does")
	}
	if a.Returns == nil {
		all = append(all, "it does not say what it returns: callers cannot rely on a structure")
	}
	if a.RateLimit == nil {
		limit := DefaultRateLimit()
		all = append(all, fmt.Sprintf("it has no rate limit: the default of %d in %s is in force", limit.Requests, limit.Window))
	}
	parameters, err := schema.Compile(a.Parameters)
	if err != nil {
		return append(all, "its parameters are no schema: "+err.Error())
	}
	for _, p := range parameters.Root().Properties() {
		if unconstrained(p.Schema) {
			all = append(all, fmt.Sprintf("the parameter %s takes any value: no input is validated", p.Name))
		}
	}
	return all
}

// unconstrained reports whether a schema says nothing about its values.
func unconstrained(n schema.Node) bool {
	if value, ok := n.Boolean(); ok {
		return value
	}
	_, _, ref := n.Ref()
	_, constant := n.Const()
	_, not := n.Not()
	combined := len(n.OneOf()) + len(n.AnyOf()) + len(n.AllOf())
	return n.Types() == nil && n.Enum() == nil && combined == 0 && !ref && !constant && !not
}
