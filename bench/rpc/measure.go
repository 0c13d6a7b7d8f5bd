package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// A shape is a load that every system gets.
type shape struct {
	Size    int     `json:"size"`
	Callers int     `json:"callers,omitempty"` // of a closed loop
	Rate    float64 `json:"rate,omitempty"`    // of an open loop
}

func (s shape) String() string {
	switch {
	case s.Rate > 0:
		return fmt.Sprintf("%d bytes, %.0f calls/s", s.Size, s.Rate)
	case s.Callers == 1:
		return fmt.Sprintf("%d bytes, 1 caller", s.Size)
	}
	return fmt.Sprintf("%d bytes, %d callers", s.Size, s.Callers)
}

// mostInFlight bounds an open loop.
const mostInFlight = 1024

// A sample is one measurement.
type sample struct {
	PerSecond float64       `json:"perSecond"`
	P50       time.Duration `json:"p50"`
	P99       time.Duration `json:"p99"`
	P999      time.Duration `json:"p999"`
	Max       time.Duration `json:"max"`
	Unsent    float64       `json:"unsent"` // share of an open loop's calls
	// CPU and allocations are a call's.
	CallerCPU time.Duration `json:"callerCpu"`
	CalleeCPU time.Duration `json:"calleeCpu"`
	BrokerCPU time.Duration `json:"brokerCpu"`
	Allocs    float64       `json:"allocs"`
	Lost      float64       `json:"lost"` // share of the records of both ends that are missing
}

// A row is what was measured of a system under a shape.
type row struct {
	System  string   `json:"system"`
	Shape   shape    `json:"shape"`
	Samples []sample `json:"samples"` // one a round
}

// ends are the processes of one system. A system has a broker of its own, because the
// agents of two systems on one broker would be replicas of each other.
type ends struct {
	system
	broker, callee, caller *child
}

// A bench holds the processes of a run.
type bench struct {
	plan
	systems []*ends
}

// open starts the processes of every system. They stay until the end: their start is no
// part of a call, and idle ones cost next to nothing.
func open(p plan) (b *bench, err error) {
	chosen, err := choose(p.only)
	if err != nil {
		return nil, err
	}
	b = &bench{plan: p}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	for _, s := range chosen {
		e := &ends{system: s}
		b.systems = append(b.systems, e)
		if err = b.start(e); err != nil {
			return b, err
		}
	}
	return b, nil
}

func (b *bench) start(e *ends) (err error) {
	address := ""
	if !e.direct && !e.within {
		if e.broker, err = b.startChild("broker"); err != nil {
			return err
		}
		address = e.broker.address
	}
	if !e.within {
		if e.callee, err = b.startChild("callee", e.name, address); err != nil {
			return err
		}
		address = e.callee.address
	}
	e.caller, err = b.startChild("caller", e.name, address)
	return err
}

// close ends callers before the callees that they call, and brokers last.
func (b *bench) close() error {
	var errs []error
	for _, e := range b.systems {
		errs = append(errs, e.caller.stop(), e.callee.stop(), e.broker.stop())
	}
	return errors.Join(errs...)
}

// compare lets the systems take turns, so that what else the machine does hits all.
func (b *bench) compare(ctx context.Context, s shape, progress io.Writer) ([]row, error) {
	rows := make([]row, len(b.systems))
	whole := b.only == ""
	for round := range b.rounds {
		fmt.Fprintf(progress, "%s: round %d of %d\n", s, round+1, b.rounds)
		for i, e := range b.systems {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if whole && !e.takes(s) {
				continue
			}
			one, err := b.measure(e, s)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", e.name, s, err)
			}
			rows[i] = row{e.name, s, append(rows[i].Samples, one)}
		}
	}
	return slices.DeleteFunc(rows, func(r row) bool { return r.Samples == nil }), nil
}

// measure takes one sample.
func (b *bench) measure(e *ends, s shape) (sample, error) {
	spec := loadSpec{Size: s.Size, Callers: s.Callers, Rate: s.Rate, For: b.duration}
	if s.Rate > 0 {
		spec.Callers = mostInFlight
	}
	warm := spec
	warm.For = b.duration / 4
	if _, err := e.caller.do(command{Load: &warm}); err != nil {
		return sample{}, err
	}
	if err := b.profiled(e, b.profile); err != nil {
		return sample{}, err
	}
	before, err := e.settle([2]int64{})
	if err != nil {
		return sample{}, err
	}
	a, err := e.caller.do(command{Load: &spec})
	if err != nil {
		return sample{}, err
	}
	n := float64(a.Report.Calls)
	after, err := e.settle([2]int64{before.recorded[0] + int64(n), before.recorded[1] + int64(n)})
	if err != nil {
		return sample{}, err
	}
	if err := b.profiled(e, "-"); err != nil {
		return sample{}, err
	}
	r := a.Report
	used := func(i int) usage { return after.usage[i].minus(before.usage[i]) }
	each := func(i int) time.Duration { return time.Duration(float64(used(i).CPU) / n) }
	one := sample{
		PerSecond: r.PerSecond(), P50: r.Latency.P50, P99: r.Latency.P99, P999: r.Latency.P999, Max: r.Latency.Max,
		CallerCPU: each(0), CalleeCPU: each(1), BrokerCPU: each(2),
		Allocs: float64(used(0).Mallocs+used(1).Mallocs) / n,
	}
	for i := range 2 {
		if after.recorded[i] > 0 { // the log has other records, too: a few
			one.Lost += max(0, 1-float64(after.recorded[i]-before.recorded[i])/n) / 2
		}
	}
	if r.Due > 0 {
		one.Unsent = float64(r.Unsent) / float64(r.Due)
	}
	return one, nil
}

func (b *bench) profiled(e *ends, folder string) error {
	if b.profile == "" {
		return nil
	}
	_, err := e.caller.do(command{Profile: folder})
	if err == nil && e.callee != nil {
		_, err = e.callee.do(command{Profile: folder})
	}
	return err
}

const (
	settleStep = 25 * time.Millisecond
	settleMost = 120 // steps
	// settled is the time that processes at rest take in a step at most.
	settled = 2 * time.Millisecond
	// stillMost is how many quiet steps without a new record mean that the missing ones are
	// lost: a commit waits for the disk.
	stillMost = 8
)

// A state is what the processes of a system have used, and what the ends have recorded,
// until they came to rest.
type state struct {
	usage    [3]usage // of caller, callee and broker
	recorded [2]int64 // of caller and callee
}

// settle waits until the two ends rest and, if they keep access logs, have so many
// records, or cannot have lost fewer: what a call leaves to be done later, such as its
// record, is part of its cost, and not of the next measurement.
func (e *ends) settle(records [2]int64) (s state, err error) {
	still := 0
	for range settleMost {
		last := s.usage
		for i, c := range []*child{e.caller, e.callee, e.broker} {
			if c == nil {
				continue
			}
			a, err := c.do(command{})
			if err != nil {
				return s, err
			}
			s.usage[i] = a.Usage
		}
		if last[0].CPU > 0 && s.usage[0].CPU+s.usage[1].CPU-last[0].CPU-last[1].CPU < settled {
			before := s.recorded
			complete, err := e.complete(&s, records)
			if complete || err != nil {
				return s, err
			}
			if s.recorded != before {
				still = 0
			} else if still++; still == stillMost {
				return s, nil
			}
		}
		time.Sleep(settleStep)
	}
	return s, nil
}

// complete reports whether the logs have so many records.
func (e *ends) complete(s *state, records [2]int64) (bool, error) {
	all := true
	for i, c := range []*child{e.caller, e.callee} {
		if c == nil {
			continue
		}
		a, err := c.do(command{Recorded: true})
		if err != nil {
			return false, err
		}
		s.recorded[i] = a.Recorded
		all = all && (a.Recorded == 0 || a.Recorded >= records[i])
	}
	return all, nil
}
