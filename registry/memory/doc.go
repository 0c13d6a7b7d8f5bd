// Package memory is the capability memory: notes that an agent keeps from one
// conversation to the next, with a full-text search.
//
// The notes are in a SQLite file in the agent's state folder. Processes on one machine
// may share it. A note belongs to the tenant of the call that it was made in, and no
// other tenant sees it. Their number and sizes are bounded, and what is forgotten is
// overwritten in the file.
package memory
