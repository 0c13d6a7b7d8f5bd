// Package skillapi is what a skill may ask of its agent: HTTP on a TCP port of the
// loopback interface, whose address the skill's process has in AGENTD_URL.
//
//	POST /v1/request         a nested call: part of the one that the skill serves. Body and
//	                         responses are those of package control's
//	POST /v1/agent/progress  the progress of the skill's call, any JSON value; responds {wanted}
//	POST /mcp                the tools of the agent's capabilities, by the Model Context Protocol
//	GET  /v1/results/{id}    waits for the result of an asynchronous call, at most ?timeoutMs
//
// There is nothing else. Approvals, dead letters, the audit log and whatever concerns the
// agent as a whole are the operator's, on the socket of package control.
//
// # Who may ask
//
// Each request names the running call that it is part of in the header Agentd-Call, or as
// "Authorization: Bearer", by the token that the skill's process has in AGENTD_CALL. The token is valid while that call
// runs, at the agent that serves it, and its holder acts for that call: in the agent's
// name, for the call's tenant, in its trace and session, and until its deadline. A request
// that has begun ends when the call ends.
//
// GET /v1/results/{id} responds with results of the agent's own calls for the tenant of
// the call, and for a call without a tenant with those for none. Which of the agent's calls
// has made the asynchronous one does not matter: a result outlives the call that asked for
// it, which is what asynchronous calls are for, and often the process of agentd. The id has
// 80 random bits: whoever knows it was given it, or made the call. A session is no boundary,
// because any caller may name any.
//
// # Who may connect
//
// A port on the loopback interface is open to every local user, and to the pages of a
// browser by way of DNS rebinding. So the server refuses, before it reads a body:
//
//   - connections of other users, where the system says whose they are (Linux);
//   - requests whose Host is not the address that it listens on, or that have an Origin;
//   - requests without the token of a running call.
//
// A connection carries one request. Those that have not named a running call yet are few:
// the server cuts the oldest of them for a newer one, so that strangers who open many and
// say nothing keep no skill out. [MaxRequests] bounds what one call may ask at a time.
//
// A Unix socket would leave out other users by itself, but a confined skill may not open
// one, and no inherited descriptor survives the ways in which Python, Node.js and Go start
// further programs.
package skillapi
