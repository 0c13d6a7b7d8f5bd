package netguard

import (
	"bytes"
	"compress/gzip"
	"context"
	"runtime"
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

// A small answer that unpacks to a large one takes memory for what is allowed of it.
func TestUnpackedWithinBounds(t *testing.T) {
	var member bytes.Buffer
	z := gzip.NewWriter(&member)
	if _, err := z.Write(make([]byte, 8<<20)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	bomb := bytes.Repeat(member.Bytes(), 8) // 64 MiB
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := readAll(t.Context(), bytes.NewReader(bomb), true, 1<<20)
	runtime.ReadMemStats(&after)
	if e := failure.As(err); e == nil || e.Code != failure.TooLarge {
		t.Error(err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
		t.Errorf("%d bytes became %d MiB", len(bomb), took>>20)
	}
}
