// Package sandbox confines the program of a skill before it runs, so that it gets no more
// than it was given although it runs as the same user as agentd.
//
// # How a program is confined
//
// What the [Policy] does not grant is given up before the program runs, and stays given up for
// all that the program starts. In this order,
//
//   - every descriptor but standard input, output and error is closed at execve,
//   - no_new_privs is set, so that no set-user-ID program brings anything back,
//   - a Landlock domain is entered: files, TCP ports, signals and abstract sockets,
//   - the [User] of the policy is taken on, if that names one,
//   - capabilities are dropped,
//   - a seccomp filter is installed for what Landlock lets through,
//
// and the process has the mark of the call (package procmark) and its resource limits. The
// error of the call names the step if one of them fails. Nothing here is left out because it
// failed; a layer that the kernel does not have is left out, and [Available] says which, so
// that the daemon can say it at start.
//
// # Who gives it up
//
// A thread of agentd does ([Threads]). All of this but the mark and the limits is a thread's
// own, and inherited by what the thread forks. The thread starts the program, which stops
// for it at the end of execve (ptrace); another thread, which is not confined, sets the
// limits of the stopped process; then the confined thread lets it go, still stopped, and
// ends, and only when it has ended is the program continued. The order matters: to the
// kernel the program may do to that thread whatever it may do to itself, and a signal to a
// thread is one to agentd.
//
// A kernel, or the rules of a container, may not permit this: [OpenThreads] tries it. Then,
// and for other users' programs, agentd starts itself, as `agentd confine` ([Main]): that
// process, the helper, gives up the same by the same code and becomes the program by
// execve, under the same process id. It costs some milliseconds for each program, for a Go
// program as large as agentd takes them to start.
//
// Descriptors of agentd that an execve would leave open, such as those that it was started
// with, are no longer left open after the first program was started by a thread: a program
// with agents of its own must pass them on by name ([os/exec.Cmd.ExtraFiles]).
//
// Landlock is called directly: go-landlock restricts all threads of a process, by a library
// in C, and fails on a path that may not be opened.
//
// # What a program may
//
// [Default] is the policy of a skill whose files say nothing of it: Python, Node, shells and
// Go programs run under it. It reads the system and its own folder, writes a temporary
// folder of the call ([Folders]), connects to the TCP ports of DNS and the web, and starts
// programs. Landlock grants folders with all that is below them and can subtract nothing, so
// the entries of a folder are granted one by one where a path of [Policy.Hidden] is
// among them.
//
// Systems other than Linux have none of this: [Available] is empty there, and programs are
// not confined.
package sandbox
