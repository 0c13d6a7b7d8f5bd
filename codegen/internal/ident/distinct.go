package ident

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// A Claim is the wish of something for an identifier.
type Claim struct {
	// Key is what is to be named: no two things have the same, and it never changes.
	Key string
	// Name is the identifier that it gets if nothing else has it.
	Name string
}

// Distinct returns the identifiers of claims by their keys. Claims to one name, or to
// names that differ only in case, all get a part of the hash of their key behind it, as
// does a claim to a name that is taken.
//
// Numbers would be shorter. But who gets which would depend on the order of claims, or
// on what else there is: code written for one thing would silently mean another. So
// nobody keeps a name that somebody else claims too, and code that uses it does not
// compile any more.
func Distinct(claims []Claim, taken ...string) map[string]string {
	reserved := map[string]bool{}
	for _, name := range taken {
		reserved[strings.ToLower(name)] = true
	}
	wanted := map[string]map[string]bool{} // keys by name in lower case
	for _, c := range claims {
		name := strings.ToLower(c.Name)
		if wanted[name] == nil {
			wanted[name] = map[string]bool{}
		}
		wanted[name][c.Key] = true
	}
	// Four digits nearly always do. Where they do not, all get more.
	for digits := 4; ; digits *= 2 {
		names, used := make(map[string]string, len(claims)), map[string]string{}
		unique := true
		for _, c := range claims {
			name := c.Name
			if lower := strings.ToLower(name); len(wanted[lower]) > 1 || reserved[lower] {
				hash := sha256.Sum256([]byte(c.Key))
				name += "_" + hex.EncodeToString(hash[:])[:min(digits, 2*len(hash))]
			}
			lower := strings.ToLower(name)
			if key, other := used[lower]; other && key != c.Key || reserved[lower] {
				unique = false
			}
			names[c.Key], used[lower] = name, c.Key
		}
		if unique || digits > 2*sha256.Size {
			return names
		}
	}
}
