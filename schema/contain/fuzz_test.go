package contain_test

import (
	"errors"
	"testing"
	"time"

	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/contain"
)

// FuzzIsSubschema holds answers about any two schemas to a value, and to a
// bound on time.
func FuzzIsSubschema(f *testing.F) {
	for _, p := range readPairs(f, "testdata/containment.jsonl") {
		f.Add([]byte(p.A), []byte(p.B), []byte(`{"k":[1,"x"]}`))
	}
	f.Fuzz(func(t *testing.T, srcA, srcB, value []byte) {
		a, errA := schema.Compile(srcA)
		b, errB := schema.Compile(srcB)
		if errA != nil || errB != nil {
			t.Skip()
		}
		start := time.Now()
		got := contain.IsSubschema(a, b)
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("took %v", took)
		}
		switch {
		case got.Answer == contain.Proven && a.Valid(value) && !b.Valid(value):
			t.Errorf("proven, but %s contradicts", value)
		case got.Answer == contain.Refuted && (!a.Valid(got.Witness) || b.Valid(got.Witness)):
			t.Errorf("%s is no witness", got.Witness)
		case got.Answer == contain.Undecided && got.Reason == "":
			t.Error("undecided without reason")
		}
		if same := contain.IsSubschema(a, a); same.Answer != contain.Proven {
			t.Errorf("not contained in itself: %v", same)
		}
		sample, err := contain.Sample(a)
		if err == nil && !a.Valid(sample) {
			t.Errorf("%s is no sample", sample)
		}
		if errors.Is(err, contain.ErrUnsatisfiable) && a.Valid(value) {
			t.Errorf("called unsatisfiable, but accepts %s", value)
		}
	})
}
