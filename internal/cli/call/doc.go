// Package call implements the commands around one call: `agentd request` makes
// it through a running agent, `agentd await` waits for the answer of an
// asynchronous one, and `agentd progress` reports progress from inside a skill.
package call
