package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// A sample is one measurement.
type sample struct {
	calls    int
	rate     float64 // calls a second
	p50, p99 time.Duration
	cpu      time.Duration // of caller and callee, a call
	broker   time.Duration // of the broker, a call
	allocs   float64       // of caller and callee, a call
}

func (p *plan) run(ctx context.Context, out io.Writer) error {
	broker, err := startChild("broker")
	if err != nil {
		return err
	}
	for _, size := range p.payloads {
		for _, callers := range p.callers {
			results, cerr := p.compare(ctx, broker, size, callers)
			if cerr != nil {
				return errors.Join(cerr, broker.stop())
			}
			writeTable(out, len(payload(size)), callers, results)
		}
	}
	return broker.stop()
}

// A result is a system's samples.
type result struct {
	name    string
	samples []sample
}

// median is the sample whose rate is in the middle.
func (r *result) median() sample {
	sorted := slices.SortedFunc(slices.Values(r.samples), func(a, b sample) int { return int(a.rate - b.rate) })
	return sorted[len(sorted)/2]
}

// compare lets the systems take turns.
func (p *plan) compare(ctx context.Context, broker *child, size, callers int) ([]*result, error) {
	var results []*result
	for range p.rounds {
		i := 0
		for _, s := range systems() {
			if p.only != "" && s.name != p.only {
				continue
			}
			if i == len(results) {
				results = append(results, &result{name: s.name})
			}
			one, err := p.measure(ctx, s, broker, size, callers)
			if err != nil {
				return nil, fmt.Errorf("%s, %d bytes, %d callers: %w", s.name, size, callers, err)
			}
			results[i].samples = append(results[i].samples, one)
			i++
		}
	}
	return results, nil
}

// measure takes one sample, with a callee and a connection of its own.
func (p *plan) measure(ctx context.Context, s system, broker *child, size, callers int) (sample, error) {
	args := []string{s.name, broker.address}
	if p.profile != "" {
		args = append(args, p.profile)
	}
	callee, err := startChild(args...)
	if err != nil {
		return sample{}, err
	}
	c, err := s.dial(callee.address)
	if err != nil {
		return sample{}, errors.Join(err, callee.stop())
	}
	one, err := p.sample(ctx, s, c, broker, callee, payload(size), callers)
	return one, errors.Join(err, c.close(), callee.stop())
}

func (p *plan) sample(ctx context.Context, s system, c client, broker, callee *child, data []byte, callers int) (sample, error) {
	if _, err := load(ctx, c, data, callers, p.duration/4); err != nil { // warm up
		return sample{}, err
	}
	if p.profile != "" {
		end, err := profileTo(filepath.Join(p.profile, s.name+"-caller.pprof"))
		if err != nil {
			return sample{}, err
		}
		defer end()
	}
	var before, after [3]usage
	var err error
	usages := func(into *[3]usage) {
		var err1, err2 error
		into[1], err1 = callee.usage()
		into[2], err2 = broker.usage()
		into[0] = ownUsage()
		err = errors.Join(err, err1, err2)
	}
	usages(&before)
	begun := time.Now()
	latencies, lerr := load(ctx, c, data, callers, p.duration)
	took := time.Since(begun)
	usages(&after)
	if err = errors.Join(err, lerr); err != nil {
		return sample{}, err
	}
	slices.Sort(latencies)
	n := len(latencies)
	near, far, between := after[0].minus(before[0]), after[1].minus(before[1]), after[2].minus(before[2])
	return sample{
		calls: n, rate: float64(n) / took.Seconds(), p50: latencies[n/2], p99: latencies[n*99/100],
		cpu: (near.cpu + far.cpu) / time.Duration(n), broker: between.cpu / time.Duration(n),
		allocs: float64(near.mallocs+far.mallocs) / float64(n),
	}, nil
}

// load calls from some goroutines for a while, and returns each call's latency.
func load(ctx context.Context, c client, data []byte, callers int, d time.Duration) ([]time.Duration, error) {
	var mu sync.Mutex
	var all []time.Duration
	var errs []error
	var running sync.WaitGroup
	end := time.Now().Add(d)
	for range callers {
		running.Go(func() {
			var own []time.Duration
			var err error
			for begun := time.Now(); begun.Before(end) && err == nil && ctx.Err() == nil; {
				callCtx, cancel := context.WithTimeout(ctx, callLimit)
				err = c.call(callCtx, data)
				cancel()
				now := time.Now()
				own, begun = append(own, now.Sub(begun)), now
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, own...)
			errs = append(errs, err)
		})
	}
	running.Wait()
	return all, errors.Join(append(errs, ctx.Err())...)
}

// writeTable writes Markdown. Ratios are against the first system, raw.
func writeTable(out io.Writer, size, callers int, results []*result) {
	fmt.Fprintf(out, "\n### %d bytes, %d callers\n\n", size, callers)
	fmt.Fprintln(out, "| system | calls/s | ratio | p50 µs | ratio | p99 µs | CPU µs/call | broker CPU | allocs/call |")
	fmt.Fprintln(out, "|---|---:|---:|---:|---:|---:|---:|---:|---:|")
	base := results[0].median()
	for _, r := range results {
		m := r.median()
		fmt.Fprintf(out, "| %s | %.0f | %.2f | %.0f | %.2f | %.0f | %.1f | %.1f | %.0f |\n", r.name,
			m.rate, m.rate/base.rate, micros(m.p50), float64(m.p50)/float64(base.p50), micros(m.p99),
			micros(m.cpu), micros(m.broker), m.allocs)
	}
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
