package sandbox

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
)

// No more programs start at a time than the bound, those that wait are served in the order
// in which they came, and one that waits leaves with its call.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewStarts()
		var running []func()
		for range s.Most() {
			done, err := s.turn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			running = append(running, done)
		}
		left := errors.New("the caller has left")
		ctx, cancel := context.WithCancelCause(t.Context())
		waits := make(chan error, 1)
		go func() {
			_, err := s.turn(ctx)
			waits <- err
		}()
		var order []int
		const calls = 5
		for n := range calls {
			go func() {
				done, err := s.turn(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, n)
				running = append(running, done)
			}()
			synctest.Wait() // it waits
		}
		cancel(left)
		if err := <-waits; !errors.Is(err, left) {
			t.Errorf("a call that has ended waited for its turn: %v", err)
		}
		for n := range calls {
			if len(order) != n {
				t.Fatalf("after %d ends %d have begun", n, len(order))
			}
			end := running[n]
			end()
			end() // which is nothing
			synctest.Wait()
		}
		if want := []int{0, 1, 2, 3, 4}; !slices.Equal(order, want) {
			t.Errorf("the order is %d", order)
		}
	})
}

// A program that does not start keeps its turn no longer than its call lasts.
func TestTurnsEndWithTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewStarts()
		ctx, cancel := context.WithCancel(t.Context())
		for range s.Most() {
			if _, err := s.turn(ctx); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		synctest.Wait()
		if len(s.turns) != 0 {
			t.Errorf("%d turns are left", len(s.turns))
		}
	})
}
