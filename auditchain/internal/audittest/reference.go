package audittest

import (
	"bytes"
	"crypto/sha256"
)

// TreeHash is MTH of RFC 6962 section 2.1 over leaf hashes, as the RFC defines it:
// recursively, and independently of the code under test.
func TreeHash(leaves [][]byte) []byte {
	switch len(leaves) {
	case 0:
		sum := sha256.Sum256(nil)
		return sum[:]
	case 1:
		return leaves[0]
	}
	k := split(len(leaves))
	sum := sha256.Sum256(bytes.Join([][]byte{{1}, TreeHash(leaves[:k]), TreeHash(leaves[k:])}, nil))
	return sum[:]
}

// AuditPath is PATH of RFC 6962 section 2.1.1 for leaf m, counted from 0.
func AuditPath(m int, leaves [][]byte) [][]byte {
	if len(leaves) == 1 {
		return nil
	}
	k := split(len(leaves))
	if m < k {
		return append(AuditPath(m, leaves[:k]), TreeHash(leaves[k:]))
	}
	return append(AuditPath(m-k, leaves[k:]), TreeHash(leaves[:k]))
}

// split returns the largest power of two smaller than n.
func split(n int) int {
	k := 1
	for 2*k < n {
		k *= 2
	}
	return k
}
