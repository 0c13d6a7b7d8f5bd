package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) == 4 && os.Args[1] == nodeFlag {
		exit(runNode(os.Args[2], os.Args[3]))
	}
	agents := flag.Int("agents", 1000, "agents of the largest fleet; two smaller ones have a tenth and three tenths")
	peers := flag.Int("peers", 9, "peers that each agent lists")
	page := flag.String("o", "", "file to write the page to")
	p := plan{kill: true}
	flag.IntVar(&p.calls, "calls", 27, "calls of each agent")
	flag.DurationVar(&p.idle, "idle", time.Minute, "how long to watch a fleet without calls")
	flag.Parse()
	exit(run(*agents, *peers, p, *page))
}

// witnessesOf is the number of witnesses in the fleets that have some.
const witnessesOf = 2

// run measures fleets without witnesses, then smaller ones with some, and writes the page.
func run(agents, peers int, p plan, page string) error {
	if agents/10 <= peers {
		return fmt.Errorf("the smallest of the fleets would have %d agents, too few for %d peers each", agents/10, peers)
	}
	progress := func(text string) { fmt.Fprintln(os.Stderr, text) }
	s := shape{Servers: 3, Peers: peers}
	bare, wrong, err := measureAll([]int{agents / 10, agents * 3 / 10, agents}, s, p, progress)
	if err != nil {
		return err
	}
	s.Witnesses = witnessesOf
	witnessed, also, err := measureAll([]int{agents / 10, agents * 3 / 10}, s, plan{checkpoints: true}, progress)
	if err != nil {
		return err
	}
	text := render(bare, witnessed)
	if page == "" {
		fmt.Print(text)
	} else if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
		return err
	}
	return errors.Join(wrong, also)
}

// measureAll measures fleets of several sizes. wrong names the formulas that do not hold.
func measureAll(sizes []int, s shape, p plan, progress func(string)) (all []result, wrong, err error) {
	var errs []error
	for _, n := range sizes {
		s.Agents = n
		rows, err := measure(s, p, progress)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, result{s, rows})
		for _, r := range rows {
			if !r.holds() {
				errs = append(errs, fmt.Errorf("%d agents: %s: the formula says %.1f, the servers %.1f", n, r.Name, r.Predicted, r.Measured))
			}
		}
		debug.FreeOSMemory() // so that the next fleet's is its own
	}
	return all, errors.Join(errs...), nil
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// cpuTime is the CPU time of this process.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
