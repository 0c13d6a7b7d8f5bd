// Package approvals implements `agentd approvals`: it lists the calls that wait
// for a person's decision in the running agents, and takes the decision.
package approvals
