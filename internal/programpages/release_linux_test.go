package programpages

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// What the start of this program has used and nothing uses now is no longer resident, and the
// program goes on.
func TestRelease(t *testing.T) {
	resident := func() (kB int64) {
		t.Helper()
		file, err := os.Open("/proc/self/smaps")
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		all, err := readMappings(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range ofProgram(all, reflect.ValueOf(Release).Pointer()) {
			kB += m.resident
		}
		return kB
	}
	before := resident()
	for range 100 {
		if err := Release(); err != nil {
			t.Fatal(err)
		}
	}
	if after := resident(); before == 0 || after >= before {
		t.Errorf("%d kB are resident, %d kB before", after, before)
	}
}

// Only what is as in the file is let go of.
func TestMappingsOfProgram(t *testing.T) {
	const smaps = `00400000-00452000 r-xp 00000000 08:02 173521                             /opt/a b (deleted)
Size:                328 kB
Rss:                 200 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
00652000-00655000 r--p 00052000 08:02 173521                             /opt/a b (deleted)
Rss:                  12 kB
Anonymous:             0 kB
00655000-00656000 r--p 00055000 08:02 173521                             /opt/a b (deleted)
Rss:                   4 kB
Anonymous:             4 kB
00656000-00657000 rw-p 00056000 08:02 173521                             /opt/a b (deleted)
Rss:                   4 kB
Anonymous:             0 kB
7f0000000000-7f0000001000 r-xp 00000000 08:02 9                          /lib/libc.so
Anonymous:             0 kB
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]
7ffc00022000-7ffc00023000 r-xp 00000000 00:00 0
`
	all, err := readMappings(strings.NewReader(smaps))
	if err != nil {
		t.Fatal(err)
	}
	want := []mapping{
		{first: 0x400000, end: 0x452000, modes: "r-xp", path: "/opt/a b (deleted)", resident: 200},
		{first: 0x652000, end: 0x655000, modes: "r--p", path: "/opt/a b (deleted)", resident: 12},
	}
	if got := ofProgram(all, 0x400010); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	for _, pc := range []uintptr{1, 0x7ffc00022010} { // code that is in no file
		if got := ofProgram(all, pc); got != nil {
			t.Errorf("code at %x: %+v", pc, got)
		}
	}
	if _, err := readMappings(strings.NewReader("zz-1 r-xp 0 0 0 /bin/a\n")); err == nil {
		t.Error("an address that is none was read")
	}
}
