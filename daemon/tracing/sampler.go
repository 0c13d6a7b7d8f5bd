package tracing

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/agentd/agentd/rpc/span"
)

// A Sampler decides which traces are recorded, as OTEL_TRACES_SAMPLER names it. The zero
// value is parentbased_always_off.
type Sampler struct {
	// Ratio is how many of the traces that begin here are, from 0 to 1.
	Ratio float64
	// Everywhere applies the ratio to traces that have begun elsewhere as well. Otherwise
	// the decision of where they began holds, so that a trace is whole or not there.
	Everywhere bool
}

// ParseSampler reads OTEL_TRACES_SAMPLER and its argument.
func ParseSampler(name, argument string) (Sampler, error) {
	s := Sampler{Ratio: 1}
	kind, parentBased := strings.CutPrefix(name, "parentbased_")
	s.Everywhere = !parentBased && name != ""
	switch {
	case name == "" || kind == "always_on":
		return s, nil
	case kind == "always_off":
		s.Ratio = 0
		return s, nil
	case kind != "traceidratio":
		return Sampler{Ratio: 1}, fmt.Errorf("OTEL_TRACES_SAMPLER: %.64q is not known here: it is [parentbased_]always_on, always_off or traceidratio", name)
	case argument == "":
		return s, nil
	}
	ratio, err := strconv.ParseFloat(argument, 64)
	if err != nil || math.IsNaN(ratio) || ratio < 0 || ratio > 1 {
		return s, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG: %.64q is not from 0 to 1", argument)
	}
	s.Ratio = ratio
	return s, nil
}

// begin is the trace context of new work below parent. One that is not sampled is parent's
// own, unless the decision differs from parent's: there is no span that it could name.
func (s Sampler) begin(parent string) string {
	if !span.Valid(parent) {
		return span.Begin(s.bound())
	}
	sampled := span.Sampled(parent)
	if s.Everywhere {
		sampled = span.Rank(parent) < s.bound()
	}
	if !sampled {
		return span.WithSampled(parent, false)
	}
	return span.WithSampled(span.Child(parent, true), true)
}

// bound is below which rank traces are sampled: all of them for 1.
func (s Sampler) bound() uint64 { return uint64(s.Ratio * (1 << 63)) }
