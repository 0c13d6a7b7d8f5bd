package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The rights that Landlock knows.
const (
	fileRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_READ_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	readRights = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	// No devices can be made. Refer lets a file move from one folder to another.
	writeRights = readRights | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	executeRights = readRights | unix.LANDLOCK_ACCESS_FS_EXECUTE

	landlockRefer       = 2 // the version with LANDLOCK_ACCESS_FS_REFER
	landlockIoctl       = 5 // the version with LANDLOCK_ACCESS_FS_IOCTL_DEV
	landlockResolveUnix = 9 // the version with LANDLOCK_ACCESS_FS_RESOLVE_UNIX
)

// landlockRuleNet is LANDLOCK_RULE_NET_PORT.
const landlockRuleNet = 2

// landlockVersion returns the version of the kernel's Landlock, or 0.
func landlockVersion() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}

// handled is what a domain holds a program to, by the kernel's version.
func handled(version int) unix.LandlockRulesetAttr {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1}
	for _, later := range [...]struct {
		version int
		right   uint64
	}{
		{landlockRefer, unix.LANDLOCK_ACCESS_FS_REFER}, {landlockTruncate, unix.LANDLOCK_ACCESS_FS_TRUNCATE},
		{landlockIoctl, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV}, {landlockResolveUnix, unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX},
	} {
		if version >= later.version {
			attr.Handled_access_fs |= later.right
		}
	}
	if version >= landlockTCP {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if version >= landlockScopes {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	return attr
}

// restrict puts this thread into a Landlock domain with the rights of a policy.
func restrict(p *Policy) error {
	version := landlockVersion()
	if p.Off || version == 0 {
		return nil
	}
	attr := handled(version)
	// The fields after Scoped are of versions that this package does not use.
	size := unsafe.Offsetof(attr.Quiet_access_fs)
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0) //nolint:gosec // x/sys has no function for it
	if errno != 0 {
		return fmt.Errorf("landlock_create_ruleset: %w", errno)
	}
	rules := ruleset{fd: int(fd), attr: attr, hidden: p.Hidden, apart: slices.Concat(p.Hidden, p.Apart)}
	defer unix.Close(rules.fd) //nolint:errcheck // the domain stays
	if err := rules.addPolicy(p); err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fmt.Errorf("landlock_restrict_self: %w", errno)
	}
	return nil
}

// A ruleset is a domain that is being made.
type ruleset struct {
	fd     int
	attr   unix.LandlockRulesetAttr
	hidden []string
	apart  []string // and hidden
}

// addPolicy adds the rules of a policy.
func (r *ruleset) addPolicy(p *Policy) error {
	read, write := uint64(readRights), uint64(writeRights)
	if p.Execute {
		read, write = read|executeRights, write|executeRights
	}
	var grants []grant
	for _, group := range [...]struct {
		paths  []Path
		rights uint64
	}{{p.Read, read}, {p.Write, write}, {p.Programs, executeRights}} {
		for _, path := range flatten(group.paths) {
			rights := group.rights
			if path.Data {
				rights &^= unix.LANDLOCK_ACCESS_FS_EXECUTE
			}
			grants = append(grants, grant{Path: path, rights: rights, named: path.Required})
		}
	}
	grants, err := resolve(grants)
	if err != nil {
		return err
	}
	for _, g := range grants {
		if err := r.add(g); err != nil {
			return err
		}
	}
	for _, port := range p.tcp() {
		if err := r.addPort(port, unix.LANDLOCK_ACCESS_NET_CONNECT_TCP); err != nil {
			return err
		}
	}
	for _, port := range p.Listen {
		if err := r.addPort(port, unix.LANDLOCK_ACCESS_NET_BIND_TCP); err != nil {
			return err
		}
	}
	return nil
}

// flatten replaces folders that are granted without their folders by their files.
func flatten(paths []Path) []Path {
	var all []Path
	for _, path := range paths {
		if !path.Flat {
			all = append(all, path)
			continue
		}
		entries, _ := os.ReadDir(path.Name) // what cannot be listed is passed over
		for _, entry := range entries {
			file := filepath.Join(path.Name, entry.Name())
			if entry.Type().IsRegular() || entry.Type()&os.ModeSymlink != 0 && isFile(file) {
				all = append(all, Path{Name: file})
			}
		}
	}
	return all
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// A grant is a path with rights.
type grant struct {
	Path
	rights uint64
	named  bool // it is a required path, or below one
}

// resolve follows the symbolic links of paths, and leaves out what cannot be found and what
// another grant covers: /usr/bin and its libraries beside /usr.
func resolve(grants []grant) ([]grant, error) {
	found := grants[:0]
	links := newLinks()
	for _, g := range grants {
		if g.Fixed {
			found = append(found, g) // addPath finds out
			continue
		}
		real, err := links.follow(g.Name)
		switch {
		case err != nil && g.Required:
			return nil, fmt.Errorf("%s: %w", g.Name, err)
		case err == nil:
			g.Name = real
			found = append(found, g)
		}
	}
	slices.SortStableFunc(found, func(a, b grant) int { return cmp.Compare(a.Name, b.Name) })
	kept := found[:0]
	var above []grant // those that hold the grant which is looked at
	for _, g := range found {
		above = slices.DeleteFunc(above, func(a grant) bool { return !within(a.Name, g.Name) })
		if !slices.ContainsFunc(above, func(a grant) bool { return g.rights&^a.rights == 0 && (a.Required || !g.Required) }) {
			kept = append(kept, g)
			above = append(above, g)
		}
	}
	return kept, nil
}

// add grants a path, which has no symbolic links, but for what is hidden below it.
func (r *ruleset) add(g grant) error {
	below, kept := false, r.apart
	if g.named {
		kept = r.hidden
	}
	for _, h := range kept {
		if within(h, g.Name) {
			if g.Required {
				return fmt.Errorf("%s holds what no skill may read (%s)", g.Name, h)
			}
			return nil
		}
		below = below || within(g.Name, h)
	}
	if !below {
		return r.addPath(g)
	}
	// A right to a folder is one to all that is below it. The entries are granted one by
	// one instead; the right to list them is harmless below: names are no secrets.
	list := g
	list.rights &= unix.LANDLOCK_ACCESS_FS_READ_DIR
	if err := r.addPath(list); err != nil {
		return err
	}
	entries, err := os.ReadDir(g.Name)
	if err != nil {
		if g.Required {
			return err
		}
		return nil
	}
	for _, entry := range entries {
		// What a link leads to is granted where it stands.
		if entry.Type()&os.ModeSymlink != 0 {
			continue
		}
		// It may have gone meanwhile.
		if err := r.add(grant{Path: Path{Name: filepath.Join(g.Name, entry.Name())}, rights: g.rights, named: g.named}); err != nil {
			return err
		}
	}
	return nil
}

// addPath grants a path with all that is below it. It follows no link: the name has none,
// unless a program has made one since it was resolved.
func (r *ruleset) addPath(g grant) error {
	fd, err := unix.Openat2(unix.AT_FDCWD, g.Name, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	switch {
	case errors.Is(err, unix.ELOOP) && g.Required:
		return fmt.Errorf("%s: a symbolic link has taken the place of what agent.yaml granted: %w", g.Name, err)
	case err != nil && g.Required:
		return fmt.Errorf("%s: %w", g.Name, err)
	case err != nil:
		return nil // not here, or nothing that this user may open
	}
	defer unix.Close(fd) //nolint:errcheck // it was only named
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return fmt.Errorf("%s: %w", g.Name, err)
	}
	rights := g.rights & r.attr.Handled_access_fs
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileRights
	}
	if rights == 0 {
		return nil
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}                                                                //nolint:gosec // a descriptor
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0) //nolint:gosec // as above
	switch {
	case errno == 0:
		return nil
	case errors.Is(errno, unix.EBADFD) && !g.Required: // of a kernel-internal file system
		return nil
	default:
		return fmt.Errorf("landlock_add_rule: %s: %w", strings.TrimSpace(g.Name), errno)
	}
}

// addPort grants a TCP port.
func (r *ruleset) addPort(port uint16, right uint64) error {
	if r.attr.Handled_access_net&right == 0 {
		return nil
	}
	attr := struct{ access, port uint64 }{right, uint64(port)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), landlockRuleNet, uintptr(unsafe.Pointer(&attr)), 0, 0, 0) //nolint:gosec // as above
	if errno != 0 {
		return fmt.Errorf("landlock_add_rule: port %d: %w", port, errno)
	}
	return nil
}
