package skill

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// tick is the unit of times in /proc: USER_HZ, which is 100 on all that Go runs on.
const tick = 10 * time.Millisecond

// usageOf returns the processor time and the memory of a process, and 0 for one that is gone.
func usageOf(pid int) (cpu time.Duration, resident int64) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0
	}
	// proc(5): the name in parentheses may hold parentheses and spaces itself.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	const user, system, pages = 11, 12, 21
	if len(fields) <= pages {
		return 0, 0
	}
	number := func(i int) int64 { n, _ := strconv.ParseInt(string(fields[i]), 10, 64); return n }
	return time.Duration(number(user)+number(system)) * tick, number(pages) * int64(os.Getpagesize())
}
