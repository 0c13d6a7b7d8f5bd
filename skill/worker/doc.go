// Package worker runs skills in processes that stay: a [Pool] is an [rpc.Handler] whose
// calls are served by some instances of one program, which docs/worker-protocol.md describes
// to its author.
//
// # Who does what
//
// A [Pool] has a slot for each instance. A slot is one goroutine that starts an instance,
// puts the next one in its place when that is due, and waits between failures. An instance is
// one process and one goroutine, which alone has the state of it: which calls run there, what
// is to be written, and what comes due when. Two more goroutines read and write the pipes for
// it, so that a program that does not read keeps nobody waiting.
//
// Calls wait in one queue, from which an instance takes one whenever it can serve it.
//
// # What becomes of a call
//
// Every call that an instance has taken gets exactly one outcome, at the latest when the
// process has ended. If the process ends first, a call that it cannot have read goes to
// another instance. A call that it may have read fails, and is not to be repeated: it may
// have begun.
package worker
