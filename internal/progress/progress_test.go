package progress

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var screen bytes.Buffer
		l := begin(&screen, "verifying reviewer", "records", func() int { return 80 })
		l.Set(0, 1_000_000)
		time.Sleep(delay / 2)
		synctest.Wait()
		if screen.Len() > 0 {
			t.Errorf("work that may be quick shows %q", screen.String())
		}
		for i := range int64(10) {
			l.Set((i+1)*42_000, 1_000_000)
			time.Sleep(interval)
		}
		synctest.Wait()
		lines := strings.Split(screen.String(), erase)
		last := lines[len(lines)-1]
		if want := "verifying reviewer: 420,000 of 1,000,000 records (42 %), "; !strings.HasPrefix(last, want) || !strings.HasSuffix(last, "s left") || !strings.Contains(last, "/s") {
			t.Errorf("the line says %q", last)
		}
		l.End()
		l.End()
		if !strings.HasSuffix(screen.String(), erase) {
			t.Error("the line stays when the work is over")
		}
	})
}

func TestQuickWorkShowsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var screen bytes.Buffer
		l := begin(&screen, "pruning", "records", func() int { return 80 })
		l.Set(5, 10)
		time.Sleep(delay / 2)
		l.End()
		if screen.Len() > 0 {
			t.Errorf("%q", screen.String())
		}
	})
}

func TestNothingWithoutATerminal(t *testing.T) {
	t.Parallel()
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, w := range []any{file, &bytes.Buffer{}} {
		l := New(w.(interface{ Write([]byte) (int, error) }), os.Getenv, "pruning", "records")
		if l != nil {
			t.Errorf("%T has a line", w)
		}
		l.Set(1, 2) // a nil line takes everything
		l.Add(1)
		l.End()
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	l := &Line{what: "exporting", unit: "records"}
	for want, got := range map[string]string{
		"exporting: 0 records, 1 s":                                         l.text(0, 0, 0, time.Second),
		"exporting: 1,234 records, 500/s, 2 s":                              l.text(1234, 0, 500, 2*time.Second),
		"exporting: 10 of 40 records (25 %), 10/s, 3 s left":                l.text(10, 40, 10, time.Second),
		"exporting: 41 of 40 records (100 %), 10/s, 1 s":                    l.text(41, 40, 10, time.Second),
		"exporting: 1 of 1,000,000 records (0 %), 1/s, 277 h 46 min left":   l.text(1, 1_000_000, 1, time.Second),
		"exporting: 5 of 10 records (50 %), 10 s left":                      l.text(5, 10, 0.5, time.Second),
		"exporting: 100 of 100,000 records (0 %), 1,000/s, 1 min 40 s left": l.text(100, 100_000, 1000, time.Second),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := clip("über alles", 4); got != "über" {
		t.Errorf("clipped to %q", got)
	}
}

func TestMeterFollowsTheNewestRate(t *testing.T) {
	t.Parallel()
	var m meter
	start := time.Now()
	m.add(start, 0)
	if m.perSecond() != 0 {
		t.Error("a rate out of nothing")
	}
	for i := 1; i <= 100; i++ { // fast for ten seconds, and slow for ten
		done := int64(i) * 1000
		if i > 50 {
			done = 50_000 + int64(i-50)
		}
		m.add(start.Add(time.Duration(i)*200*time.Millisecond), done)
	}
	if got := m.perSecond(); got < 4 || got > 6 {
		t.Errorf("%.1f/s, want those of the last seconds", got)
	}
	if len(m.samples) > 40 {
		t.Errorf("%d samples are kept", len(m.samples))
	}
}
