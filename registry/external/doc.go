// Package external is the capability mcp: the tools of external servers of the Model Context
// Protocol, which the agent's file names by command or URL.
//
// What a server promises of its tools is not taken from it at run time. It was pinned before:
// `agentd registry pin` asks each server once and keeps the contracts in [LockName] beside
// agent.yaml, for people to read and to keep under version control. So what an agent has is
// known without starting anything, and a tool whose contract has changed is refused until it
// is pinned anew (package mcpclient).
package external
