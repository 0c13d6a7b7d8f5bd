// Package counter is what the tests of the mutation tool mutate.
package counter

import "errors"

// A Counter counts up to a bound.
type Counter struct{ n, most int }

// New makes a counter.
func New(most int) *Counter { return &Counter{most: most} }

// Add counts one more. It fails at the bound.
func (c *Counter) Add() error {
	if c.n >= c.most {
		return errors.New("full")
	}
	c.n++
	return nil
}

// Reset begins again. No test notices whether it does.
func (c *Counter) Reset() {
	c.n = 0
}

// Wait returns when n is no longer positive.
func Wait(n int) {
	for n > 0 {
		n--
	}
}

// Never is not tested at all.
func Never(a, b bool) bool { return a && b }
