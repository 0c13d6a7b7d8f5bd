package health

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentd/agentd/internal/logtest"
)

func board() (*Board, *logtest.Lines) {
	var l logtest.Lines
	return NewBoard(l.Logger()), &l
}

func full(code string) Condition {
	return Condition{Kind: AuditLog, Code: code, Effect: "no records", Cause: "the disk is " + code, Remedy: "free space"}
}

// A condition is one line when it begins, one when its cause changes, and one when it
// ends; readiness has the cause for as long as it holds.
func TestConditionIsSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, logged := board()
		b.End(AuditLog, "") // there is none
		for range 3 {
			b.Begin(full("disk-full"))
		}
		began := time.Now()
		if logged.Count("level=ERROR") != 1 || logged.Count("level=INFO") != 0 {
			t.Errorf("logged %s", logged)
		}
		for _, want := range []string{`msg="no records"`, "condition=audit-log", "code=disk-full", `cause="the disk is disk-full"`, `remedy="free space"`} {
			if !strings.Contains(logged.String(), want) {
				t.Errorf("no %s in %s", want, logged)
			}
		}
		time.Sleep(time.Second)
		b.Begin(full("io"))
		if logged.Count("level=ERROR") != 2 || !b.Active()[0].Since.Equal(began) {
			t.Errorf("after another cause: %+v, %s", b.Active(), logged)
		}
		if err := b.Err(); err == nil || err.Error() != "audit-log: no records: the disk is io (free space)" {
			t.Errorf("readiness: %v", err)
		}
		b.End(AuditLog, "")
		if logged.Count("level=INFO") != 1 || !strings.Contains(logged.String(), `msg="over: no records"`) || !strings.Contains(logged.String(), "lasted=1s") {
			t.Errorf("logged %s", logged)
		}
		if b.Err() != nil || b.Active() != nil || b.Warnings() != nil {
			t.Error("it has ended, and is still shown")
		}
	})
}

// What an agent can live with is a warning, and each subject has a condition of its
// own.
func TestAdvisoryConditions(t *testing.T) {
	b, logged := board()
	for _, w := range []string{"a", "b"} {
		b.Begin(Condition{Kind: Witness, Subject: w, Code: "x", Effect: "e", Cause: "c", Advisory: true})
	}
	b.End(Witness, "a")
	if got := b.Warnings(); b.Err() != nil || len(got) != 1 || got[0] != "audit-witness: e: c" {
		t.Errorf("%v, %v", got, b.Err())
	}
	if logged.Count("level=ERROR") != 2 || !strings.Contains(logged.String(), "subject=b") {
		t.Errorf("logged %s", logged)
	}
}

// watched is a thing that fails when it is told to.
type watched struct {
	broken       atomic.Pointer[error]
	idle, probes atomic.Int32
	ended        atomic.Int32
}

func (w *watched) fail(err error) { w.broken.Store(&err) }

func (w *watched) watch(b *Board) *Monitor {
	return Watch(b, Watched{
		Interval: 2 * time.Second,
		Describe: func(err error) Condition { return full(err.Error()) },
		Check: func(_ context.Context, failing bool) error {
			if failing {
				w.probes.Add(1)
			} else {
				w.idle.Add(1)
			}
			if err := w.broken.Load(); err != nil {
				return *err
			}
			return nil
		},
		Ended: func() { w.ended.Add(1) },
	})
}

// Trouble that a use has met ends within seconds of its cause, without another use.
// The attempts to find out grow rare while it lasts.
func TestMonitorEndsTroubleByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, logged := board()
		w := &watched{}
		m := w.watch(b)
		defer m.Close()
		w.fail(errors.New("full"))
		m.Fail(errors.New("full"))
		m.Fail(errors.New("another"))
		if err := m.Err(); err == nil || err.Error() != "full" || logged.Count("level=ERROR") != 1 {
			t.Errorf("%v, %s", err, logged)
		}
		time.Sleep(time.Hour)
		if n := w.probes.Load(); n < 600 || n > 800 {
			t.Errorf("%d probes in an hour", n)
		}
		w.fail(errors.New("io")) // the cause changes
		time.Sleep(2 * lastProbe)
		if logged.Count("level=ERROR") != 2 || m.Err().Error() != "io" {
			t.Errorf("%v, %s", m.Err(), logged)
		}
		w.broken.Store(nil)
		time.Sleep(lastProbe)
		synctest.Wait()
		if m.Err() != nil || w.ended.Load() != 1 || logged.Count("level=INFO") != 1 {
			t.Errorf("%v, %d ended, %s", m.Err(), w.ended.Load(), logged)
		}
	})
}

// A fault that nobody meets is found all the same.
func TestMonitorFindsTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, logged := board()
		w := &watched{}
		m := w.watch(b)
		defer m.Close()
		time.Sleep(time.Minute + time.Second)
		if w.idle.Load() != 30 || m.Err() != nil || logged.Count("level=ERROR")+logged.Count("level=INFO") != 0 {
			t.Errorf("%d checks, %v", w.idle.Load(), m.Err())
		}
		w.fail(errors.New("gone"))
		time.Sleep(3 * time.Second)
		if m.Err() == nil || b.Err() == nil {
			t.Error("nobody has noticed")
		}
		w.broken.Store(nil)
		time.Sleep(3 * time.Second)
		if m.Err() != nil {
			t.Error(m.Err())
		}
	})
}

// Trouble that comes and goes does not fill the log.
func TestMonitorBoundsItsLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, logged := board()
		m := (&watched{}).watch(b)
		defer m.Close()
		for range 100_000 {
			m.Fail(errors.New("large records do not fit"))
			time.Sleep(10 * time.Millisecond)
		}
		if n := logged.Count("level=ERROR"); n < 100 || n > 1000/4 {
			t.Errorf("%d lines in %s", n, 100_000*10*time.Millisecond)
		}
	})
}

// The conditions are shown oldest first.
func TestConditionsInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := board()
		for i := range 9 {
			b.Begin(Condition{Kind: Identity, Subject: fmt.Sprint(9 - i), Code: "c"})
			time.Sleep(time.Second)
		}
		for i, c := range b.Active() {
			if c.Subject != fmt.Sprint(9-i) {
				t.Errorf("%d is %s", i, c.Subject)
			}
		}
	})
}

// A look is repeated until it is stopped, and none runs afterwards.
func TestRepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int32
		stop := Repeat(time.Second, func() { looks.Add(1) })
		if looks.Load() != 1 {
			t.Error("the first look waits")
		}
		time.Sleep(3500 * time.Millisecond)
		stop()
		time.Sleep(time.Minute)
		if n := looks.Load(); n != 4 {
			t.Errorf("%d looks", n)
		}
	})
}
