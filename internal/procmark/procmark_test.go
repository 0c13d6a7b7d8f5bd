package procmark_test

import (
	"testing"

	"github.com/agentd/agentd/internal/procmark"
)

func TestSources(t *testing.T) {
	a, b := procmark.NewSource(), procmark.NewSource()
	first, second := a.Next(), a.Next()
	if first == procmark.None || first == second || int64(first) < 0 {
		t.Errorf("marks %d and %d", first, second)
	}
	if !a.Made(first) || !a.Made(second) || b.Made(first) || a.Made(procmark.None) {
		t.Error("a source does not know its own marks")
	}
}
