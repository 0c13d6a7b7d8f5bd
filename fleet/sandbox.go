package fleet

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/agentd/agentd/internal/strictyaml"
)

// A Sandbox says what the program of a skill may besides what every skill may. Package
// skill/sandbox has the rules.
type Sandbox struct {
	// Off is set for `sandbox: off`: nothing holds the program.
	Off bool
	// Read and Write are files and folders that it may read, and change.
	Read, Write []SandboxPath
	// Connect and Listen are TCP ports.
	Connect, Listen []int
	// User is whom the program runs as, in place of agentd's user; nil for that one.
	User *SandboxUser
	// What follows bounds each process of the skill by itself; 0 leaves agentd's bound.
	MemoryBytes, FileBytes, OpenFiles, CPUSeconds int64
	// Position is where the key stands.
	Position Position
}

// A SandboxPath is a path that a file grants.
type SandboxPath struct {
	// Path is absolute.
	Path string
	// Position is where it stands.
	Position Position
}

// A SandboxUser is a user of the host that a file names.
type SandboxUser struct {
	// Name is a name or a number. Whether there is such a user is the host's to say.
	Name string
	// Position is where it stands.
	Position Position
}

// decodeSandbox reads the key sandbox of a skill; nil if there is none. Relative paths
// begin at dir, the skill's folder.
func decodeSandbox(v strictyaml.Value, dir string) *Sandbox {
	const (
		leastMemory, leastFiles = 1 << 20, 16 // less lets no program start
		mostFiles               = 1 << 20
		mostSeconds             = 24 * 60 * 60
	)
	if !v.Present() {
		return nil
	}
	s := &Sandbox{Position: v.Position()}
	if v.Kind() != strictyaml.Map {
		s.Off = v.Enum("off") == "off"
		return s
	}
	o := v.Object()
	defer o.Done()
	s.Read, s.Write = decodeSandboxPaths(o.Get("read"), dir), decodeSandboxPaths(o.Get("write"), dir)
	s.Connect, s.Listen = decodePorts(o.Get("connect")), decodePorts(o.Get("listen"))
	s.User = decodeSandboxUser(o.Get("user"))
	s.MemoryBytes = o.Get("memoryBytes").Int(leastMemory, math.MaxInt64)
	s.FileBytes = o.Get("fileBytes").Int(1, math.MaxInt64)
	s.OpenFiles = o.Get("openFiles").Int(leastFiles, mostFiles)
	s.CPUSeconds = o.Get("cpuSeconds").Int(1, mostSeconds)
	return s
}

// decodeSandboxPaths reads a list of paths. They may lead anywhere but to the root of the
// file system; ~ is the home of agentd's user.
func decodeSandboxPaths(v strictyaml.Value, dir string) (paths []SandboxPath) {
	for _, item := range v.List() {
		path := filepath.FromSlash(item.Text())
		switch below, home := strings.CutPrefix(path, "~"); {
		case path == "":
			continue
		case strings.ContainsRune(path, 0):
			item.Fault("the path holds a NUL byte", "")
		case home && (below == "" || below[0] == filepath.Separator):
			folder, err := os.UserHomeDir()
			if err != nil {
				item.Fault("~ is unknown: HOME is not set", "write an absolute path")
			}
			path = filepath.Join(folder, below)
		case !filepath.IsAbs(path):
			path = filepath.Join(dir, path)
		}
		path = filepath.Clean(path)
		if path == string(filepath.Separator) {
			item.Fault("the path is everything that there is", "name what the skill needs, or say `sandbox: off`")
		}
		paths = append(paths, SandboxPath{Path: path, Position: item.Position()})
	}
	return paths
}

// decodeSandboxUser reads the name or the number of a user.
func decodeSandboxUser(v strictyaml.Value) *SandboxUser {
	const mostUser = math.MaxUint32 - 1 // the last one stands for none
	if !v.Present() {
		return nil
	}
	u := &SandboxUser{Position: v.Position()}
	if v.Kind() == strictyaml.Number {
		u.Name = strconv.FormatInt(v.Int(0, mostUser), 10)
	} else {
		u.Name = v.Text()
	}
	if u.Name == "root" || u.Name == "0" {
		v.Fault("root may do everything", "name a user that exists for such skills alone")
	}
	return u
}

// decodePorts reads a list of TCP ports.
func decodePorts(v strictyaml.Value) (ports []int) {
	for _, item := range v.List() {
		if item.Kind() == strictyaml.String {
			_, port, _ := strings.Cut(item.Text(), ":")
			item.Fault("a port is a number: the kernel holds a skill to ports, whatever the host", "write "+port)
			continue
		}
		if n := item.Int(1, math.MaxUint16); n != 0 {
			ports = append(ports, int(n))
		}
	}
	return ports
}

// ParseSandbox reads the key sandbox of a program that is no skill, as JSON. Relative paths
// begin at dir. The error is a [*LoadError], whose places are within src.
func ParseSandbox(src []byte, dir string) (*Sandbox, error) {
	file, err := strictyaml.Parse("sandbox.json", src)
	if err != nil {
		return nil, err
	}
	s := decodeSandbox(file.Root(), dir)
	return s, file.Err()
}

// checkSandboxes reports grants with which a skill could change what agentd reads or runs.
func (f *Fleet) checkSandboxes() error {
	var faults []strictyaml.Fault
	for _, m := range f.Members {
		if m.Agent == nil {
			continue // which is a fault of its own
		}
		for _, s := range m.Agent.Programs() {
			faults = append(faults, f.grantFaults(s)...)
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return &strictyaml.Error{Faults: faults}
}

// CheckGrants refuses what checkSandboxes would, for a program that runs as a skill does.
func (f *Fleet) CheckGrants(s Skill) error {
	if faults := f.grantFaults(s); len(faults) > 0 {
		return &strictyaml.Error{Faults: faults}
	}
	return nil
}

// grantFaults reports grants with which a skill could change files of any member, and so the
// rules that agentd enforces, or the programs of skills, which would do its work in later
// calls, with what another skill was given.
func (f *Fleet) grantFaults(s Skill) (faults []strictyaml.Fault) {
	if s.Sandbox == nil {
		return nil
	}
	for _, granted := range s.Sandbox.Write {
		if file := f.fileBelow(granted.Path); file != "" {
			faults = append(faults, granted.Position.Fault(
				fmt.Sprintf("the skill %q could change %s, and with it what agentd does", s.Name, file), "name a folder for its data alone"))
		} else if file, of := f.programBelow(granted.Path); file != "" {
			faults = append(faults, granted.Position.Fault(
				fmt.Sprintf("the skill %q could change %s, which the skill %q runs", s.Name, file, of), "name a folder for its data alone"))
		}
	}
	return faults
}

// fileBelow returns a file of the fleet that is at a path or below it, relative to the
// root, or "".
func (f *Fleet) fileBelow(path string) string {
	real := realPath(path)
	for _, m := range f.Members {
		if m.Agent == nil {
			continue
		}
		for _, file := range f.Files(m) {
			if within(real, realPath(file)) {
				return f.relative(file)
			}
		}
	}
	return ""
}

// programBelow returns what a skill runs and is at a path or below it, relative to the root,
// and the skill; or "".
func (f *Fleet) programBelow(path string) (program, of string) {
	real := realPath(path)
	for _, m := range f.Members {
		if m.Agent == nil {
			continue
		}
		for _, s := range m.Agent.Programs() {
			for _, program := range s.Process.programs() {
				if within(real, realPath(program)) {
					return f.relative(program), s.Name
				}
			}
		}
	}
	return "", ""
}

// relative returns a path relative to the root, if there is such a path.
func (f *Fleet) relative(path string) string {
	if rel, err := filepath.Rel(f.Root, path); err == nil {
		return rel
	}
	return path
}

// realPath follows the symbolic links of a path, as far as there are files.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(realPath(parent), filepath.Base(path))
}
