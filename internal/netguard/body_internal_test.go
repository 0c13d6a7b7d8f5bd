package netguard

import (
	"context"
	"strings"
	"testing"

	"github.com/agentd/agentd/internal/failure"
)

// What ends after the time of the request is not taken for a whole answer, however it ends.
func TestAnswerEndsLate(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	if data, err := readAll(ctx, strings.NewReader("half"), false, 100); err != nil || string(data) != "half" {
		t.Fatalf("%q, %v", data, err)
	}
	cancel()
	data, err := readAll(ctx, strings.NewReader("half"), false, 100)
	if e := failure.As(err); e == nil || e.Code != failure.Cancelled || data != nil {
		t.Errorf("%q, %v", data, err)
	}
}
