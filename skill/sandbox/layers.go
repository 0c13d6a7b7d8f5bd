package sandbox

// Layers are what a kernel has to confine programs with.
type Layers struct {
	// Landlock is the version of its interface, 0 for none.
	Landlock int
	// Seccomp is true where system calls can be filtered.
	Seccomp bool
	// Marks is true where processes can be marked (package procmark).
	Marks bool
}

// The versions of Landlock from which it holds these.
const (
	landlockTruncate = 3
	landlockTCP      = 4
	landlockScopes   = 6
)

// Missing lists what the kernel cannot hold a program to, in words. It is empty where
// skills are separated from the operator.
func (l Layers) Missing() []string {
	var all []string
	add := func(missing bool, what string) {
		if missing {
			all = append(all, what)
		}
	}
	if l.Landlock == 0 {
		add(true, "files, ports and signals (the kernel has no Landlock, or it is not enabled)")
	} else {
		add(l.Landlock < landlockTruncate, "truncating files (Landlock is older than version 3)")
		add(l.Landlock < landlockTCP, "TCP ports (Landlock is older than version 4)")
		add(l.Landlock < landlockScopes, "signals and abstract sockets (Landlock is older than version 6)")
	}
	add(!l.Seccomp, "sockets and limits of other processes (the kernel has no seccomp filters, or this architecture has none here)")
	add(!l.Marks, "descendants (processes have no marks)")
	return all
}
