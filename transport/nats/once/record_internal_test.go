package once

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// An entry has what was put into it, and nothing else is taken for one.
func TestRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := record{
			State: rapid.SampledFrom([]state{claimed, left, done}).Draw(t, "state"), Digest: rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "digest"),
			Owner: rapid.StringMatching(`[A-Za-z0-9]{22}`).Draw(t, "owner"), LeaseMs: rapid.Int64().Draw(t, "lease"), reply: rapid.SliceOf(rapid.Byte()).Draw(t, "reply"),
		}
		data, err := r.encode()
		if err != nil {
			t.Fatal(err)
		}
		if len(data)-len(r.reply) > headerBytes {
			t.Errorf("the header has %d bytes", len(data)-len(r.reply))
		}
		got, err := decodeRecord(data)
		if err != nil || got.State != r.State || !bytes.Equal(got.Digest, r.Digest) || got.Owner != r.Owner || got.LeaseMs != r.LeaseMs || !bytes.Equal(got.reply, r.reply) {
			t.Errorf("%+v became %+v: %v", r, got, err)
		}
	})
	for text, want := range map[string]string{
		"": "cut short", `{"v":1}`: "cut short", "x\n": "none of agentd's", `{"v":2}` + "\n": "format is 2", `{"v":1,"digest":"AAAA"}` + "\n": "digest is cut short",
	} {
		if _, err := decodeRecord([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// No two sequences of names have one key.
func TestKeysDiffer(t *testing.T) {
	names := rapid.SliceOfN(rapid.StringMatching(`[ab\x00]{0,3}`), 1, 4)
	rapid.Check(t, func(t *rapid.T) {
		a, b := names.Draw(t, "a"), names.Draw(t, "b")
		if same := strings.Join(a, "|") == strings.Join(b, "|") && len(a) == len(b); same != (keyOf(a...) == keyOf(b...)) {
			t.Errorf("%q and %q", a, b)
		}
	})
	if key := keyOf("a"); len(key) <= len(probeKey) {
		t.Errorf("the key %s could be the probe's", key)
	}
}

// A claim is over when its owner was silent for the lease that it has named, by the
// clock of whoever waits; or long ago by the server's.
func TestClaimIsOver(t *testing.T) {
	start := time.Now()
	r := &record{LeaseMs: 1000}
	var s sighting
	for _, step := range []struct {
		revision uint64
		after    time.Duration
		over     bool
	}{
		{7, 0, false}, {7, 999 * time.Millisecond, false},
		{9, 1500 * time.Millisecond, false}, // renewed
		{9, 2400 * time.Millisecond, false}, {9, 2500 * time.Millisecond, true},
		{12, 3 * time.Second, false},
	} {
		// The clock of the server is half a minute behind, which makes no difference.
		if got := s.isOver(r, step.revision, start.Add(-30*time.Second), start.Add(step.after)); got != step.over {
			t.Errorf("revision %d after %s: %v", step.revision, step.after, got)
		}
	}
	if fresh := new(sighting); !fresh.isOver(r, 7, start.Add(-time.Hour), start) {
		t.Error("a claim of an hour ago is waited for")
	}
	if far := new(sighting); far.isOver(&record{LeaseMs: 1 << 60}, 7, start, start) || !far.isOver(&record{LeaseMs: 1 << 60}, 7, start, start.Add(MaxLease)) {
		t.Error("a lease is not bounded")
	}
}
