// Package peers is the capability peers: the other agents of the fleet as tools, one
// for each capability that the agent may call, typed by that capability's own contract.
//
//	capabilities:
//	  peers: {tools: [librarian__search]}
//
// A tool is called <agent>__<capability>. Characters that no model provider takes become
// _, and names that are too long end in a hash. Two that would be the same are refused
// where the agent's files are loaded.
//
// A call of a tool is a call of the agent like any other: permissions, approvals, limits,
// contracts and records apply, and it is nested in the call that the tool is used in.
package peers
