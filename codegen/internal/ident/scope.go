package ident

import (
	"strconv"
	"strings"
)

// A Scope gives out names, each once. Names that differ only in case count as
// the same, so that they also make files on every system.
type Scope struct{ taken map[string]bool }

// NewScope makes a scope in which the reserved names are taken.
func NewScope(reserved ...string) *Scope {
	s := &Scope{taken: map[string]bool{}}
	s.Reserve(reserved...)
	return s
}

// Reserve takes names that [Scope.Unique] must not give out.
func (s *Scope) Reserve(names ...string) {
	for _, name := range names {
		s.taken[strings.ToLower(name)] = true
	}
}

// Unique is name, with the lowest number from 2 behind it that makes it new.
func (s *Scope) Unique(name string) string {
	out := name
	for n := 2; s.taken[strings.ToLower(out)]; n++ {
		// "v1" and 2 make v1_2: v12 would look like a twelfth version.
		if last := name[len(name)-1]; last >= '0' && last <= '9' {
			out = name + "_" + strconv.Itoa(n)
		} else {
			out = name + strconv.Itoa(n)
		}
	}
	s.taken[strings.ToLower(out)] = true
	return out
}
