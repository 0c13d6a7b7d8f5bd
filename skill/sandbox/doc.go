// Package sandbox confines the program of a skill before it runs, so that it gets no more
// than it was given although it runs as the same user as agentd.
//
// # How a program is confined
//
// agentd does not start the program. It starts itself, as `agentd confine` ([Main]): that
// process, the helper, gives up what the [Policy] does not grant, and becomes the program
// by execve, under the same process id. What it gives up stays given up for all that the
// program starts. In this order the helper
//
//   - closes every descriptor but standard input, output and error,
//   - takes the mark of the call (package procmark),
//   - sets no_new_privs, so that no set-user-ID program brings anything back,
//   - enters a Landlock domain: files, TCP ports, signals and abstract sockets,
//   - becomes the [User] of the policy, if that names one,
//   - drops its capabilities,
//   - installs a seccomp filter for what Landlock lets through,
//   - sets the resource limits,
//
// and names the step in the error of the call if one of them fails. Nothing here is left
// out because it failed; a layer that the kernel does not have is left out, and
// [Available] says which, so that the daemon can say it at start.
//
// Landlock is called directly: the helper restricts the one thread that calls execve.
// go-landlock restricts all threads of a process, by a library in C, and fails on a path
// that may not be opened.
//
// # What a program may
//
// [Default] is the policy of a skill whose files say nothing of it: Python, Node, shells and
// Go programs run under it. It reads the system and its own folder, writes a temporary
// folder of the call ([Folders]), connects to the TCP ports of DNS and the web, and starts
// programs. Landlock grants folders with all that is below them and can subtract nothing, so
// the helper grants the entries of a folder one by one where a path of [Policy.Hidden] is
// among them.
//
// Systems other than Linux have none of this: [Available] is empty there, and programs are
// not confined.
package sandbox
