// Package metrics counts what an agent does, and writes it in the forms that Prometheus reads.
//
// names.go lists every metric, and docs/metrics.md is made from it. What lies on the path of a
// call is counted here, by [Calls] and [Audit]: each pair of a peer and a capability finds its
// counters in one look-up, and nothing is allocated. Everything else is read when somebody asks
// for it, from the agent's status, which `agentd status` shows too: nothing is counted twice.
//
// The number of series is bounded. Labels have names from closed sets, or from the agent's files;
// whatever strangers choose is counted under [Other].
package metrics
