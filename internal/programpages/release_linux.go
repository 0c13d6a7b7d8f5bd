package programpages

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"reflect"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Release lets go of all pages of the program's code and constants. It is safe at any time
// and for concurrent use. It takes about a millisecond.
func Release() error {
	file, err := os.Open("/proc/self/smaps")
	if err != nil {
		return fmt.Errorf("pages of the program: %w", err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	all, err := readMappings(file)
	if err != nil {
		return fmt.Errorf("pages of the program: %w", err)
	}
	for _, m := range ofProgram(all, reflect.ValueOf(Release).Pointer()) {
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.first, m.end-m.first, unix.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("pages of the program: %w", os.NewSyscallError("madvise", errno))
		}
	}
	return nil
}

// A mapping is one of the process's, as proc_pid_smaps(5) shows it.
type mapping struct {
	first, end uintptr
	// modes are as in r-xp.
	modes, path string
	// resident is in kB, and so is anonymous: what differs from the file, which a release
	// would lose.
	resident, anonymous int64
}

// ofProgram returns the mappings of the file that has the code at pc which are as they are in
// the file. Others hold what was written to them: variables, the addresses that a loader has
// relocated, the breakpoints of a debugger.
func ofProgram(all []mapping, pc uintptr) (clean []mapping) {
	path := ""
	for _, m := range all {
		if m.first <= pc && pc < m.end {
			path = m.path
		}
	}
	for _, m := range all {
		if path != "" && m.path == path && (m.modes == "r-xp" || m.modes == "r--p") && m.anonymous == 0 {
			clean = append(clean, m)
		}
	}
	return clean
}

func readMappings(r io.Reader) (all []mapping, err error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) < 2:
		case strings.HasSuffix(fields[0], ":"):
			if len(all) == 0 {
				break
			}
			last := &all[len(all)-1]
			switch fields[0] {
			case "Rss:":
				last.resident, err = strconv.ParseInt(fields[1], 10, 64)
			case "Anonymous:":
				last.anonymous, err = strconv.ParseInt(fields[1], 10, 64)
			}
		default:
			var m mapping
			if m, err = parseMapping(fields); err == nil {
				all = append(all, m)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("the line %q: %w", lines.Text(), err)
		}
	}
	return all, lines.Err()
}

// parseMapping reads a line such as "00400000-00452000 r-xp 00000000 08:02 173521 /bin/a".
func parseMapping(fields []string) (mapping, error) {
	first, end, _ := strings.Cut(fields[0], "-")
	from, err := strconv.ParseUint(first, 16, strconv.IntSize)
	if err != nil {
		return mapping{}, err
	}
	to, err := strconv.ParseUint(end, 16, strconv.IntSize)
	if err != nil {
		return mapping{}, err
	}
	m := mapping{first: uintptr(from), end: uintptr(to), modes: fields[1]}
	if len(fields) > 5 { // a name may have spaces, and ends with (deleted) once it has gone
		m.path = strings.Join(fields[5:], " ")
	}
	return m, nil
}
