// Package procmark marks the processes of a skill's call, so that they can be told
// from an operator's although both run as one user.
//
// A mark is what a process cannot take off, and what all of its descendants have,
// whatever they do: the hard limit RLIMIT_LOCKS. Linux keeps it, inherits it over fork
// and execve, lets nobody without CAP_SYS_RESOURCE raise it, and has enforced nothing
// with it since 2.4.25 (getrlimit(2)). A process may lower it, to a number that is no
// mark of a running call. Everybody can read it, of zombies too.
//
// Processes of other systems than Linux have no marks.
package procmark
