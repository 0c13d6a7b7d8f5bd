package source

import "strings"

// IsDevice reports whether Windows takes a file or folder of that name for a device,
// whatever follows its first dot: con.ts is the console. A checkout with one fails there.
func IsDevice(name string) bool {
	name, _, _ = strings.Cut(strings.ToLower(name), ".")
	switch name {
	case "con", "prn", "aux", "nul":
		return true
	}
	numbered := strings.HasPrefix(name, "com") || strings.HasPrefix(name, "lpt")
	return numbered && len(name) == len("com1") && name[3] >= '0' && name[3] <= '9'
}
