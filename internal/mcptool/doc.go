// Package mcptool makes skills of the tools of servers of the Model Context Protocol: a
// capability is served by a tool that somebody else wrote.
//
// A [Server] is the connection to one server, and its [Server.Handle] is an [rpc.Handler] for all
// capabilities that are bound to its tools by a [Binding]. What callers may rely on is the
// contract of the capability; what the server promises may change under it. So whenever a
// list of tools is read, at the start, when the server says that it has changed and from
// time to time, each contract is proven as a peer's is: every payload that the capability
// accepts is accepted by the tool, and every answer that the tool may give fits the
// capability. Where that is not so, or cannot be decided, calls are refused with what is
// wrong, and served again as soon as the server promises enough again. Payloads and responses
// are checked by the path of every call besides.
//
// # Answers
//
// The structured content of a result is the response. A capability with `result: mcp` has
// the whole result, and [TextJSON] and [TextString] take the text of tools that have no
// structured content. A result that is an error is an error of the skill, with the text of
// the tool as its message.
//
// # Words
//
// Models read descriptions, and a server that changes one may steer them. Words of a tool
// that are not those of the capability's contract are reported, or refused.
package mcptool
