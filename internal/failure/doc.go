// Package failure is the error that a built-in tool shows to its caller, who may be a
// language model or a peer: a code from a closed set and a text that this project
// wrote.
//
// A text names the argument or the limit that stood in the way, and what to do. It never
// repeats an error of the operating system, a database or a remote server: those name
// paths, hosts and rows that the caller was not given. The cause stays with the error
// for the log of the agent, which is the operator's: it has no part of the arguments
// either, such as a URL, a path or a query, since those may hold data of the caller.
package failure
