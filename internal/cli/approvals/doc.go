// Package approvals implements `agentd approvals`: it lists the calls that wait
// for a person's decision in the running agents, shows one of them, and takes the
// decision, which it signs where the agent lists approvers.
package approvals
