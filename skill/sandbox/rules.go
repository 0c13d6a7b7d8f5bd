package sandbox

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Default returns the policy of a skill whose folder is dir, without symbolic links.
func Default(dir string) Policy {
	return Policy{
		Read:    append(system(), Path{Name: dir, Fixed: true}),
		Write:   devices(),
		Execute: true,
		Network: true,
		// DNS by TCP, and the web.
		Connect: []uint16{53, 80, 443},
	}
}

// system lists the folders that the programs of a host are made of. What a host does not
// have is passed over.
func system() []Path {
	return optional(
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/etc",
		"/nix/store", "/gnu/store", "/run/current-system", "/home/linuxbrew/.linuxbrew",
		// Of a process itself, and the tables of the host. The kernel denies what is another
		// process's own.
		"/proc",
		"/sys/fs/cgroup", "/sys/devices/system", "/sys/kernel/mm/transparent_hugepage",
		// Where /etc/resolv.conf and the certificates may really be.
		"/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager", "/var/lib/ca-certificates",
	)
}

// devices lists what programs write that is no file. Semaphores and shared memory
// (multiprocessing.Pool) are in /dev/shm, which all programs of the user share.
func devices() []Path {
	all := optional("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/shm")
	for i := range all {
		all[i].Data = true
	}
	return all
}

func optional(names ...string) []Path {
	paths := make([]Path, len(names))
	for i, name := range names {
		paths[i].Name = name
	}
	return paths
}

// installation returns what a program needs besides the system's folders: its file, and the
// libraries of the place where it is installed, such as ~/.nvm/versions/node/v22. search are
// the folders of PATH, whose programs it may start.
//
// Of a place <prefix>/bin only the folders of libraries are taken: ~/.local has secrets in
// others.
func installation(program string, search []string) []Path {
	var names, flat []string
	add := func(folder string) {
		prefix := filepath.Dir(folder)
		switch filepath.Base(folder) {
		case "bin":
			for _, name := range []string{"lib", "lib64", "libexec", "include", "pyvenv.cfg"} {
				names = append(names, filepath.Join(prefix, name))
			}
		case "shims": // of pyenv and its relatives, which find the program below their root
			names = append(names, prefix)
		}
	}
	for _, file := range withReal(program) {
		names = append(names, file)
		add(filepath.Dir(file))
	}
	home, _ := os.UserHomeDir()
	for _, folder := range search {
		// A home is no folder of programs, whatever PATH says, nor is what holds one.
		if !filepath.IsAbs(folder) || within(folder, home) {
			continue
		}
		if folder = filepath.Clean(folder); strings.HasSuffix(folder, "bin") {
			names = append(names, folder)
		} else {
			flat = append(flat, folder) // it may hold anything besides
		}
		add(folder)
	}
	slices.Sort(names)
	paths := optional(slices.Compact(names)...)
	for _, folder := range flat {
		paths = append(paths, Path{Name: folder, Flat: true})
	}
	return paths
}

// withReal returns a path and what it is after symbolic links.
func withReal(path string) []string {
	if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
		return []string{path, real}
	}
	return []string{path}
}

// within reports whether a path is a folder or below it, by the names alone.
func within(folder, path string) bool {
	if path == "" {
		return false
	}
	if filepath.IsAbs(folder) && filepath.IsAbs(path) { // nearly all are
		folder, path = filepath.Clean(folder), filepath.Clean(path)
		below, ok := strings.CutPrefix(path, folder)
		return ok && (below == "" || below[0] == filepath.Separator || folder[len(folder)-1] == filepath.Separator)
	}
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}

// Real returns a path without symbolic links. Of a path that does not exist yet the part
// that does is resolved.
func Real(path string) string {
	path = filepath.Clean(path)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(Real(parent), filepath.Base(path))
}

// Private lists what below a folder is not for everybody to read: to a program of the same
// user, or of root, the modes are no bar. It looks at no more than most entries, at those of
// the upper folders first. A folder of which it cannot see all is private as a whole, and
// also one of unseen.
func Private(folder string, most int) (private, unseen []string) {
	var open []string // folders for everybody that are still to be read
	judge := func(path string, info fs.FileInfo, err error) {
		switch {
		case errors.Is(err, fs.ErrNotExist): // it has gone
		case err == nil && info.Mode()&fs.ModeSymlink != 0: // what it leads to is judged where it stands
		case err != nil || info.Mode().Perm()&0o004 == 0, info.IsDir() && info.Mode().Perm()&0o001 == 0:
			private = append(private, path)
		case info.IsDir():
			open = append(open, path)
		}
	}
	info, err := os.Lstat(folder)
	judge(folder, info, err)
	for ; len(open) > 0; open = open[1:] {
		entries, err := readSome(open[0], most+1)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
			continue // what agentd cannot read a skill cannot either
		case err != nil || len(entries) > most:
			private, unseen = append(private, open[0]), append(unseen, open[0])
			continue
		}
		most -= len(entries)
		for _, entry := range entries {
			info, err := entry.Info()
			judge(filepath.Join(open[0], entry.Name()), info, err)
		}
	}
	return private, unseen
}

// readSome reads at most n entries of a folder.
func readSome(folder string, n int) ([]os.DirEntry, error) {
	dir, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // it was only read
	entries, err := dir.ReadDir(n)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return entries, err
}

// interpreters returns the programs that the kernel needs to execute a file: the file, what
// a #! line names, with `#!/usr/bin/env name` that program, and the loader of shared
// libraries. search is PATH.
func interpreters(program string, search []string) []string {
	var all []string
	for range 4 { // a script's interpreter may be a script
		all = append(all, withReal(program)...)
		line := firstLine(program)
		words := strings.Fields(strings.TrimPrefix(line, "#!"))
		if !strings.HasPrefix(line, "#!") || len(words) == 0 {
			return append(all, loader(program)...)
		}
		program = words[0]
		if filepath.Base(program) == "env" {
			all = append(append(all, withReal(program)...), loader(program)...)
			words = slices.DeleteFunc(words[1:], func(w string) bool { return strings.HasPrefix(w, "-") || strings.Contains(w, "=") })
			if len(words) == 0 {
				return all
			}
			program = lookIn(search, words[0])
		}
	}
	return all
}

// openFile opens a file of a program. Anything else than a file, which a skill may have put
// in its place, is not waited for: a pipe has no writer.
func openFile(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file", path)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// firstLine returns the beginning of a file's first line, or "".
func firstLine(path string) string {
	file, err := openFile(path)
	if err != nil {
		return ""
	}
	defer file.Close() //nolint:errcheck // it was only read
	buf := make([]byte, 256)
	n, _ := file.Read(buf)
	line, _, _ := strings.Cut(string(buf[:n]), "\n")
	return line
}

// lookIn finds a program in the folders of PATH.
func lookIn(search []string, name string) string {
	for _, folder := range search {
		path := filepath.Join(folder, name)
		if info, err := os.Stat(path); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return name
}

// loader returns what loads a program's shared libraries.
func loader(program string) []string {
	file, err := openFile(program)
	if err != nil {
		return nil
	}
	defer file.Close() //nolint:errcheck // it was only read
	binary, err := elf.NewFile(file)
	if err != nil {
		return nil
	}
	for _, segment := range binary.Progs {
		if segment.Type == elf.PT_INTERP {
			const longest = 4096
			path, _ := io.ReadAll(io.LimitReader(segment.Open(), longest))
			return withReal(strings.TrimRight(string(path), "\x00"))
		}
	}
	return nil
}
