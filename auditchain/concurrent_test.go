package auditchain

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/agentd/agentd/internal/jcs"
)

// Verification of a log that is written, redacted, pruned and re-keyed at the
// same time finds nothing wrong.
func TestVerifyWhileWriting(t *testing.T) {
	l := openLog(t, Options{CheckpointRecords: 20, Now: steppedClock()})
	fill(t, l, 200)
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for c := range 4 {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if _, err := l.Append(context.Background(), violation(c+4*i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			var err error
			switch i % 3 {
			case 0:
				_, err = l.Redact(context.Background(), Filter{Correlation: fmt.Sprintf("018f3f7e-0000-7000-8000-%012d", i)}, "r")
			case 1:
				_, err = l.Prune(context.Background(), time.UnixMilli(1790000000000+int64(i)*20), "r")
			case 2:
				_, err = l.RotateKey(context.Background())
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
	r, err := OpenReader(context.Background(), l.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var last int64
	for i := range 40 {
		// Keys come from the chain, from the first one on.
		keys, err := r.PublicKeys()
		if err != nil {
			t.Fatal(err)
		}
		options := VerifyOptions{TrustedKeys: keys[:1]}
		if i%4 == 3 { // or from the file, with its keys
			options = VerifyOptions{FromCheckpoint: true}
		}
		report := verify(t, r, options)
		if !report.OK() || report.Last < last {
			t.Errorf("run %d: %+v", i, report)
			break
		}
		last = report.Last
	}
	stop()
	wg.Wait()
	closeLog(t, l)
	if report := verifyPath(t, l.Path(), VerifyOptions{}); !report.OK() || report.Unsigned() != 0 {
		t.Errorf("%+v", report)
	}
}

// Verification does not keep what it has read.
func TestVerifyInConstantMemory(t *testing.T) {
	l := openLog(t, Options{})
	const records = 2*checkPage + 100
	var wg sync.WaitGroup
	for c := range 256 {
		wg.Go(func() {
			for i := c; i < records; i += 256 {
				if _, err := l.Append(context.Background(), violation(i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	live := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before, most, calls := live(), int64(0), 0
	wantIntact(t, verify(t, l.Reader, VerifyOptions{Progress: func(int64, int64) { most, calls = max(most, live()), calls+1 }}), records)
	const bodies = records * 300 // bytes, at least
	if grown := most - before; calls != 2 || grown > bodies/3 {
		t.Errorf("%d KB more in use at one of %d looks, where all bodies are %d KB", grown>>10, calls, bodies>>10)
	}
}

// Records that are appended together keep their order, and one that the log does
// not take keeps none of the others out.
func TestAppendAll(t *testing.T) {
	l := openLog(t, Options{})
	records := make([]Record, 50)
	for i := range records {
		records[i] = violation(i)
	}
	records[7].Kind = "unknown"
	written, err := l.AppendAll(t.Context(), records)
	if written != len(records)-1 || CodeOf(err) != CodeInvalid {
		t.Fatalf("%d written, %v", written, err)
	}
	var bodies []string
	for e, err := range l.Query(t.Context(), Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, string(e.Body))
	}
	if len(bodies) != written {
		t.Fatalf("%d records, %d were acknowledged", len(bodies), written)
	}
	at := 0
	for i, r := range records {
		if i == 7 {
			continue
		}
		want, err := jcs.Append(nil, r.Body)
		if err != nil || bodies[at] != string(want) {
			t.Errorf("record %d is %s, want %s (%v)", at, bodies[at], want, err)
		}
		at++
	}
	if written, err := l.AppendAll(t.Context(), nil); written != 0 || err != nil {
		t.Errorf("nothing: %d, %v", written, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if written, err := l.AppendAll(ctx, records[:3]); written > 3 || err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %d, %v", written, err)
	}
}
