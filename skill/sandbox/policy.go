package sandbox

import (
	"slices"

	"github.com/agentd/agentd/internal/procmark"
)

// A Policy says what a program may do.
type Policy struct {
	// Off confines nothing: the program has its mark, no_new_privs, its user and its limits only.
	Off bool `json:"off,omitempty"`
	// User is whom the program runs as; nil is the user of this process.
	User *User `json:"user,omitempty"`
	// Mark is that of the call, or None.
	Mark procmark.Mark `json:"mark,omitempty"`
	// Read may be read, with all that is below a folder. Write may be read and changed.
	Read  []Path `json:"read,omitempty"`
	Write []Path `json:"write,omitempty"`
	// Programs may be executed, and read. With Execute, so may all of Read, and of Write
	// what is in a folder.
	Programs []Path `json:"programs,omitempty"`
	Execute  bool   `json:"execute,omitempty"`
	// Hidden are paths that may not be read whatever the lists say: real paths, without
	// symbolic links. The names in a granted folder stay visible.
	Hidden []string `json:"hidden,omitempty"`
	// Apart are paths that a program may not read as a part of a folder, but may where a
	// required path names them. They are real paths, too.
	Apart []string `json:"apart,omitempty"`
	// Network permits TCP to the ports of Connect, and datagrams: UDP, to any port.
	Network bool     `json:"network,omitempty"`
	Connect []uint16 `json:"connect,omitempty"`
	// Listen are TCP ports on which the program may accept connections.
	Listen []uint16 `json:"listen,omitempty"`
	// Face is the TCP port of the skill's API, 0 for none. Every program may connect to it.
	Face   uint16 `json:"face,omitempty"`
	Limits Limits `json:"limits"`
}

// A Path is one path of a policy.
type Path struct {
	Name string `json:"name"`
	// Required fails the call when the path is missing or cannot be opened: somebody has
	// named it. Without it such a path is passed over.
	Required bool `json:"required,omitempty"`
	// Fixed says that the name has no symbolic links. Where there is one by now, which
	// another program may have made, it is not followed, and the path counts as missing.
	Fixed bool `json:"fixed,omitempty"`
	// Flat grants the files in a folder, and nothing that is below its folders.
	Flat bool `json:"flat,omitempty"`
	// Data may not be executed, even where Policy.Execute is set.
	Data bool `json:"data,omitempty"`
}

// Limits bound each process by itself; 0 leaves the limit of agentd. None dumps core.
type Limits struct {
	// MemoryBytes bounds the memory that a process can write to (RLIMIT_DATA).
	MemoryBytes uint64 `json:"memoryBytes,omitempty"`
	// FileBytes bounds the size of a file that it writes (RLIMIT_FSIZE).
	FileBytes uint64 `json:"fileBytes,omitempty"`
	// OpenFiles bounds its descriptors (RLIMIT_NOFILE).
	OpenFiles uint64 `json:"openFiles,omitempty"`
	// CPUSeconds bounds its computing time (RLIMIT_CPU).
	CPUSeconds uint64 `json:"cpuSeconds,omitempty"`
}

// tcp are the ports to which a program under the policy may connect.
func (p *Policy) tcp() []uint16 {
	var ports []uint16
	if p.Network {
		ports = append(ports, p.Connect...)
	}
	if p.Face != 0 {
		ports = append(ports, p.Face)
	}
	return ports
}

// sockets reports whether a program under the policy may make sockets of the internet
// families at all.
func (p *Policy) sockets() bool { return p.Network || p.Face != 0 }

// Reads reports whether a path is one that a program under the policy may read, by the
// names alone.
func (p *Policy) Reads(path string) bool {
	kept := func(list []string) bool {
		return slices.ContainsFunc(list, func(hidden string) bool { return within(hidden, path) })
	}
	if kept(p.Hidden) {
		return false
	}
	apart := kept(p.Apart)
	return slices.ContainsFunc(slices.Concat(p.Read, p.Write, p.Programs), func(granted Path) bool {
		return within(granted.Name, path) && (granted.Required || !apart)
	})
}
