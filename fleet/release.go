package fleet

import (
	"fmt"
	"math"
	"strings"
)

// A Release is the version that a fleet goes by, v1.2.3-suffix. The suffix names the
// build and counts for nothing in comparisons. The zero value is none.
type Release struct {
	major, minor, patch uint32
	valid               bool
}

// ParseRelease reads v<major>.<minor>.<patch>-<suffix>, the suffix of ASCII
// letters and digits. It is the form of the reference system.
func ParseRelease(s string) (Release, error) {
	v := Release{valid: true}
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
		return Release{}, fmt.Errorf("%.64q is no version of a fleet: write v1.2.3-name", s)
	}
	return v, nil
}

// decimal reads digits alone: no sign, no space.
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

// IsZero reports whether v is none.
func (v Release) IsZero() bool { return !v.valid }

// Compare is negative when v is older than o, and positive when it is newer.
func (v Release) Compare(o Release) int {
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
