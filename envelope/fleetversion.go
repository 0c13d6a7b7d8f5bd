package envelope

import (
	"fmt"
	"math"
	"strings"
)

// A FleetVersion is the version of a fleet, v1.2.3-suffix, as it travels in
// [HeaderFleetVersion]. The suffix names the build; comparisons ignore it. The
// zero value means that no version is known.
type FleetVersion struct {
	major, minor, patch uint32
	valid               bool
}

// ParseFleetVersion reads v<major>.<minor>.<patch>-<suffix>, where the suffix
// consists of ASCII letters and digits: the form of the reference system.
func ParseFleetVersion(s string) (FleetVersion, error) {
	v := FleetVersion{valid: true}
	rest, ok := strings.CutPrefix(s, "v")
	numbers, suffix, dash := strings.Cut(rest, "-")
	parts := strings.Split(numbers, ".")
	ok = ok && dash && suffix != "" && len(parts) == 3
	for i, to := range []*uint32{&v.major, &v.minor, &v.patch} {
		ok = ok && decimal(parts[min(i, len(parts)-1)], to)
	}
	for i := range len(suffix) {
		c := suffix[i] | 0x20
		ok = ok && ('a' <= c && c <= 'z' || '0' <= suffix[i] && suffix[i] <= '9')
	}
	if !ok {
		return FleetVersion{}, fmt.Errorf("%.64q is not a fleet version: write v1.2.3-name", s)
	}
	return v, nil
}

// decimal reads digits only. strconv would accept signs and underscores too.
func decimal(s string, to *uint32) bool {
	n := uint64(0)
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
		if n = n*10 + uint64(s[i]-'0'); n > math.MaxUint32 {
			return false
		}
	}
	*to = uint32(n)
	return s != ""
}

// IsZero reports whether v is the zero value: no version.
func (v FleetVersion) IsZero() bool { return !v.valid }

// Compare is negative when v is older than o, and positive when it is newer.
func (v FleetVersion) Compare(o FleetVersion) int {
	for _, pair := range [][2]uint32{{v.major, o.major}, {v.minor, o.minor}, {v.patch, o.patch}} {
		switch {
		case pair[0] < pair[1]:
			return -1
		case pair[0] > pair[1]:
			return 1
		}
	}
	return 0
}
