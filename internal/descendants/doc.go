// Package descendants ends what the programs of calls leave running.
//
// A program that agentd starts for a call may start others, which may leave its process
// group and its session and outlive it. They are found by the mark that all processes of
// a call carry (package procmark) and, in a process that adopts its orphaned descendants,
// by being its children. What is no running call's is ended: stopped first, so that it
// cannot multiply meanwhile, then killed, and then waited for.
//
// What carries no mark, as on systems without them, is found only by being adopted, and
// only while no call runs: nothing shows which call it belongs to.
package descendants
