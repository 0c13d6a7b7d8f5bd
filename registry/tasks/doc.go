// Package tasks is the capability tasks: a durable list of work that one or several
// agents take from.
//
// Whoever claims a task has a lease on it: it extends the lease, completes the task or
// fails it, and nobody else can claim it. A lease that ends without any of these makes
// the task claimable again, as often as the task may be tried. Until somebody else has
// claimed it, the old lease still completes it, so that work that took too long is not
// lost.
//
// The list is in a SQLite file in the agent's state folder. Processes on one machine may
// share it: each task goes to one of them. A task belongs to the tenant of the call that
// added it, and no other tenant sees it.
package tasks
