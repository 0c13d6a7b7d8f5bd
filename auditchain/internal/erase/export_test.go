package erase

import "github.com/agentd/agentd/auditchain/internal/chain"

// EraseContent is for tests of interrupted erasures.
func EraseContent(w *chain.Writer, seqs []int64, by int64) (count int64, err error) {
	_, count, err = eraseContent(w, seqs, by, maxStep)
	return count, err
}
