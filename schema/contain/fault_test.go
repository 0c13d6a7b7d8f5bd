package contain

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/internal/ir"
	"github.com/agentd/agentd/schema/internal/pattern"
)

// TestEnginesThatDisagree breaks the validator's automaton of a pattern: the
// prover must notice, report a fault of its own, and claim nothing.
func TestEnginesThatDisagree(t *testing.T) {
	compile := func(source string) *schema.Schema {
		s, err := schema.Compile([]byte(source))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	broken := func(claims, acts string) *schema.Schema {
		s := compile(`{"type":"string","pattern":"` + claims + `"}`)
		budget := pattern.NewBudget()
		other, err := pattern.Compile(acts, &budget)
		if err != nil {
			t.Fatal(*err)
		}
		rule := s.Compiled(ir.Key{}).Root.Str
		other.Source, other.RE2 = rule.Pattern.Source, rule.Pattern.RE2
		rule.Pattern = other
		return s
	}
	for _, c := range []struct {
		name string
		a, b *schema.Schema
		log  string
	}{
		{"a refuses what its language holds", broken(`^0[xX][0-9]$`, `^0x[ab]$`), compile(`{"maxLength":2}`), `term=^0[xX][0-9]$`},
		{"b accepts what its language lacks", compile(`{"type":"string","pattern":"^[b-z]$"}`), broken(`^[aA]$`, `^[a-z]$`), `term=^[aA]$`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log bytes.Buffer
			faults := slog.New(slog.NewTextHandler(&log, nil))
			got := IsSubschemaWithin(context.Background(), c.a, c.b, Budget{Logger: faults})
			if got.Answer != Undecided || got.Reason != ReasonInternal {
				t.Errorf("got %+v", got)
			}
			if !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), "internal fault") || !strings.Contains(log.String(), c.log) {
				t.Errorf("logged %q", log.String())
			}
		})
	}
	var log bytes.Buffer
	s := broken(`^0[xX][0-9]$`, `^0x[ab]$`)
	value, err := SampleWithin(context.Background(), s, Budget{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err == nil || !strings.Contains(err.Error(), string(ReasonInternal)) || log.Len() == 0 {
		t.Errorf("sample %s, %v, logged %q", value, err, log.String())
	}
}

// TestUnverifiedWitness tells the limits of the validators from a fault.
func TestUnverifiedWitness(t *testing.T) {
	var log bytes.Buffer
	p := &prover{ctx: t.Context(), budget: Budget{Logger: slog.New(slog.NewTextHandler(&log, nil))}}
	if got := p.unverified([]byte(`1`), schema.Valid, schema.Malformed); got != ReasonWitness || log.Len() > 0 {
		t.Errorf("beyond the limits: %s, logged %q", got, log.String())
	}
	if got := p.unverified([]byte(`1`), schema.Valid, schema.Valid); got != ReasonInternal || log.Len() == 0 {
		t.Errorf("a disagreement: %s, logged %q", got, log.String())
	}
}
