package callapi

import (
	"fmt"
	"net/http/httptest"
	"testing"
)

// What a client asks for again and again is told seldom, and something else at once, until there is
// too much of that.
func TestMisusesAreToldSeldom(t *testing.T) {
	var m Misuses
	told := func(who, path string, n int) (lines []int64) {
		for range n {
			if asked, times, tell := m.Note(who, httptest.NewRequest("POST", path, nil)); tell {
				if asked != `POST "`+path+`"` {
					t.Error(asked)
				}
				lines = append(lines, times)
			}
		}
		return lines
	}
	if got := fmt.Sprint(told("a", "/v1/new", 1000)); got != "[1 2 4 8 16 32 64 128 256 512]" {
		t.Error(got)
	}
	if fmt.Sprint(told("a", "/v1/approvals", 1), told("b", "/v1/new", 1)) != "[1] [1]" {
		t.Error("another request, or client, is not told")
	}
	lines := 0
	for i := range 5_000 {
		lines += len(told("c", fmt.Sprint("/", i), 1))
	}
	if lines > maxMisuses+20 || len(m.times) > maxMisuses+1 {
		t.Errorf("%d lines, %d counts", lines, len(m.times))
	}
}
