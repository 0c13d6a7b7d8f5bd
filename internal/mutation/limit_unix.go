//go:build unix

package main

import "syscall"

// limitMemory bounds the address space of this process and of those it starts.
// A mutant whose loop never ends may allocate in it, and must run out of memory
// before the machine does. Where the bound cannot be set, tests run without it.
func limitMemory() {
	const most = 12 << 30
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_AS, &limit) == nil && limit.Cur > most {
		limit.Cur = most
		_ = syscall.Setrlimit(syscall.RLIMIT_AS, &limit)
	}
}
