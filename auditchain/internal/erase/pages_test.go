package erase

import (
	"testing"

	"github.com/agentd/agentd/auditchain/internal/record"
)

func TestRedactionPages(t *testing.T) {
	t.Parallel()
	r := record.Redaction{Ranges: [][2]int64{{1, 10}, {20, 2 * pageSize}, {5000, 5000}, {6000, 6000 + 3*pageSize}}}
	var want, got int64
	for _, run := range r.Ranges {
		want += run[1] - run[0] + 1
	}
	previous := int64(0)
	for page := range pages(&r) {
		var size int64
		for _, run := range page {
			if run[0] <= previous || run[1] < run[0] || !r.Covers(run[0]) || !r.Covers(run[1]) {
				t.Fatalf("bad range %v after %d", run, previous)
			}
			previous = run[1]
			size += run[1] - run[0] + 1
		}
		if size == 0 || size > pageSize {
			t.Fatalf("a page of %d records", size)
		}
		got += size
	}
	if got != want {
		t.Errorf("%d records in pages, %d in ranges", got, want)
	}
}
