package auditchain_test

import (
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/internal/audittest"
)

// Who writes to the file may put nodes into the tree that the log has not come to. They keep no
// record out, and the log's own take their place.
func TestNodesBeforeTheirTime(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{})
	path := l.Path()
	audittest.Append(t, l, audittest.Violation(1))
	audittest.Close(t, l)
	s := audittest.SceneAt(t, path)
	for position := range 3 {
		s.SQL(`INSERT INTO tree (level, position, hash) VALUES (8, ?, zeroblob(32))`, position)
	}
	l = audittest.OpenAt(t, path, auditchain.Options{})
	for n := range 600 { // two nodes of 256 records
		audittest.Append(t, l, audittest.Violation(n+2))
	}
	if _, err := l.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	if report := audittest.Verify(t, l.Reader, auditchain.VerifyOptions{}); !report.OK() {
		t.Errorf("%v", report.Faults)
	}
	audittest.Close(t, l)
}
