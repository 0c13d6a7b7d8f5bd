package id

import (
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestMadeAt(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 4, 3, 2, 1, 987_654_321, time.UTC)
	id, _ := new(Source).TwoAt(now)
	if at, ok := MadeAt(id); !ok || !at.Equal(now.Truncate(time.Millisecond)) {
		t.Errorf("%s was made at %v, %t", id, at, ok)
	}
	for _, other := range []string{"", "m-1", uuid.NewString(), id + "0"} {
		if at, ok := MadeAt(other); ok {
			t.Errorf("%q was made at %v", other, at)
		}
	}
}
