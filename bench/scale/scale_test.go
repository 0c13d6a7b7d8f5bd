package main

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == nodeFlag {
		exit(runNode(os.Args[2], os.Args[3]))
	}
	os.Exit(m.Run())
}

// The formulas that docs/scale.md gives to operators are those of the code: small fleets
// hold at the servers, and send them, what they say. Witnesses are left to the whole run:
// their checkpoints are ten seconds apart.
func TestFormulas(t *testing.T) {
	s, p := shape{Servers: 3, Peers: 6}, plan{calls: 5, kill: true}
	_, wrong, err := measureAll([]int{8, 16}, s, p, func(text string) { t.Log(text) })
	if err != nil {
		t.Fatal(err)
	}
	if wrong != nil {
		t.Error(wrong)
	}
}

// A formula that is off by more than the bound fails, in either direction.
func TestHolds(t *testing.T) {
	for measured, want := range map[float64]bool{100: true, 114: true, 86: true, 116: false, 84: false, 0: false} {
		if r := (row{Predicted: 100, Measured: measured}); r.holds() != want {
			t.Errorf("%v for 100 holds: %v", measured, !want)
		}
	}
	if !(row{Measured: 7, Observed: true}).holds() {
		t.Error("what has no formula cannot be off")
	}
}
