package alloctest_test

import (
	"testing"

	"github.com/agentd/agentd/internal/alloctest"
)

var kept []byte // keeps an allocation from the stack

func TestLeast(t *testing.T) {
	if n := alloctest.Least(10, func() { kept = make([]byte, 100) }); n != 1 {
		t.Errorf("one allocation counts as %v", n)
	}
	calls := 0
	if n := alloctest.Least(1, func() {
		if calls++; calls < 3 { // somebody else's
			kept = make([]byte, 100)
		}
	}); n != 0 {
		t.Errorf("an allocation of the first calls alone counts as %v", n)
	}
}
