// Package statedb keeps the data of a capability in a SQLite file in the agent's state
// folder.
//
// Several processes may have the file open, such as the replicas of an agent on one
// machine: transactions that write take SQLite's lock at their beginning, and wait for
// each other. What was written survives the end of the process and of the machine.
//
// A file that cannot be used does not end anything: each operation fails with an error
// that its caller may see, the log says when that begins and when it ends, and a file
// that was removed is made again.
package statedb
