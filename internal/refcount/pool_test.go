package refcount_test

import (
	"errors"
	"testing"

	"github.com/agentd/agentd/internal/refcount"
)

// A thing counts how often it was closed.
type thing struct{ closed int }

var errClosed = errors.New("closed")

func (t *thing) Close() error { t.closed++; return errClosed }

func TestPool(t *testing.T) {
	var p refcount.Pool[*thing]
	opened := 0
	use := func(key string) *refcount.Ref[*thing] {
		t.Helper()
		r, err := p.Use(key, func() (*thing, error) { opened++; return &thing{}, nil })
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	a, again, b := use("a"), use("a"), use("b")
	if opened != 2 || a.Value != again.Value || a.Value == b.Value {
		t.Fatalf("%d were opened", opened)
	}
	// Released twice by one user, it is still the other's.
	if err := errors.Join(a.Release(), a.Release()); err != nil || again.Value.closed != 0 {
		t.Errorf("%v, closed %d times", err, again.Value.closed)
	}
	if err := again.Release(); !errors.Is(err, errClosed) || a.Value.closed != 1 {
		t.Errorf("%v, closed %d times", err, a.Value.closed)
	}
	if use("a"); opened != 3 {
		t.Error("what was closed is used again")
	}
	if err := p.CloseAll(); !errors.Is(err, errClosed) || b.Value.closed != 1 {
		t.Errorf("%v, closed %d times", err, b.Value.closed)
	}
	failed := errors.New("failed")
	if _, err := p.Use("c", func() (*thing, error) { return nil, failed }); !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
}
