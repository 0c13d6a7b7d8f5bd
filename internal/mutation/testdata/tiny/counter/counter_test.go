package counter

import "testing"

func TestAdd(t *testing.T) {
	c := New(2)
	for range 2 {
		if err := c.Add(); err != nil {
			t.Fatal(err)
		}
	}
	if c.Add() == nil {
		t.Error("a third of two")
	}
	c.Reset()
}

func TestWait(*testing.T) { Wait(3) }
