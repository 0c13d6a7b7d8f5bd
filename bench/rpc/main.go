package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"
)

// A plan is what to measure.
type plan struct {
	payloads, callers, rates []int
	duration                 time.Duration
	rounds                   int
	only                     string
	profile                  string
	agentd                   string
	page, save, from         string
	callsOnly                bool
}

// needsAgentd reports whether the run starts the program.
func (p *plan) needsAgentd() bool { return p.only == "" || strings.Contains(p.only, "socket") }

// shapes are the loads of a plan. Rates are for the smallest payload only.
func (p *plan) shapes() []shape {
	var all []shape
	for _, size := range p.payloads {
		for _, n := range p.callers {
			all = append(all, shape{Size: size, Callers: n})
		}
	}
	for _, rate := range p.rates {
		all = append(all, shape{Size: p.payloads[0], Rate: float64(rate)})
	}
	return all
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == roleFlag {
		exit(runRole(os.Args[2:]))
	}
	var p plan
	payloads := flag.String("payload", "200,4096", "sizes of the payload in bytes")
	callers := flag.String("callers", "1,16,256", "numbers of callers at saturation; none for no such load")
	rates := flag.String("rates", "1000,10000", "calls a second of open loops, with the first payload; none for no such load")
	flag.DurationVar(&p.duration, "for", 500*time.Millisecond, "time of one measurement")
	flag.IntVar(&p.rounds, "rounds", 3, "measurements of each; the median counts")
	flag.StringVar(&p.only, "only", "", "some systems alone, separated by commas")
	flag.StringVar(&p.profile, "profile", "", "folder for CPU profiles of caller and callee")
	flag.StringVar(&p.agentd, "agentd", "", "the program agentd, for the system socket (default: this tree's, compiled)")
	flag.BoolVar(&p.callsOnly, "calls-only", false, "leave out what is no call: codec, idle agents, large fleets")
	flag.StringVar(&p.page, "o", "", "the page to write (default: tables on standard output)")
	flag.StringVar(&p.save, "save", "", "a file for the data of the run")
	flag.StringVar(&p.from, "from", "", "files with the data of runs, separated by commas, instead of a run")
	flag.Parse()
	var errs [3]error
	p.payloads, errs[0] = numbers(*payloads)
	p.callers, errs[1] = numbers(*callers)
	p.rates, errs[2] = numbers(*rates)
	if err := errors.Join(errs[:]...); err != nil {
		exit(err)
	}
	if len(p.payloads) == 0 {
		exit(errors.New("-payload: at least one size is needed"))
	}
	if p.page != "" && p.from == "" && len(p.callers)+len(p.rates) == 0 {
		exit(errors.New("-o: a page is about calls: give -callers or -rates, or leave -o out for what else is measured"))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	exit(p.run(ctx, os.Stdout, os.Stderr))
}

// run measures, and writes the page, or with -only or without -o the tables alone.
func (p *plan) run(ctx context.Context, out, progress io.Writer) error {
	r, err := p.results(ctx, progress)
	if err != nil {
		return err
	}
	if p.save != "" {
		text, err := json.MarshalIndent(r, "", " ")
		if err == nil {
			err = os.WriteFile(p.save, text, 0o600)
		}
		if err != nil {
			return err
		}
	}
	if p.page == "" {
		for _, s := range r.shapes() {
			r.writeTable(out, s)
		}
		r.writeGoals(out)
		return nil
	}
	var page bytes.Buffer
	if err := r.writePage(&page); err != nil {
		return err
	}
	return os.WriteFile(p.page, page.Bytes(), 0o644) //nolint:gosec // a page of the documentation is for everybody to read
}

// results measures, or reads what earlier runs have measured.
func (p *plan) results(ctx context.Context, progress io.Writer) (r *result, err error) {
	if p.from != "" {
		return loadResults(p.from)
	}
	folder, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if p.needsAgentd() {
		if p.agentd, err = buildAgentd(ctx, p.agentd, folder); err != nil {
			return nil, err
		}
	}
	here := thisMachine()
	done := here.watch()
	r = &result{For: p.duration}
	if err := p.measureAll(ctx, r, progress); err != nil {
		return nil, err
	}
	done() // when all children have ended
	r.Machines = []machine{here}
	return r, nil
}

// measureAll runs every load, and for a whole run what is no call.
func (p *plan) measureAll(ctx context.Context, r *result, progress io.Writer) error {
	b, err := open(*p)
	if err != nil {
		return err
	}
	for _, s := range p.shapes() {
		rows, err := b.compare(ctx, s, progress)
		if err != nil {
			return errors.Join(err, b.close())
		}
		r.Rows = append(r.Rows, rows...)
	}
	if err := b.close(); err != nil || p.only != "" || p.callsOnly {
		return err
	}
	return b.extras(r, progress)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// numbers reads a list of positive numbers; "none" is an empty one.
func numbers(list string) ([]int, error) {
	if list == "none" {
		return nil, nil
	}
	var out []int
	for _, s := range strings.Split(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is no list of positive numbers", list)
		}
		out = append(out, n)
	}
	return out, nil
}
