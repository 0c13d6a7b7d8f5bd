package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"time"
)

// options are the command line.
type options struct {
	dir      string
	patterns []string
	changed  string
	sample   int
	seed     uint64
	minimum  float64
	parallel int
	slack    time.Duration
	verbose  bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return
	case errors.Is(err, errBelowMinimum):
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stderr, "mutation:", err)
	os.Exit(2)
}

// errBelowMinimum reports that the tests of a package kill too few mutants.
var errBelowMinimum = errors.New("the tests of a package notice too little")

// parseOptions reads the command line. It reports a bad flag, and the usage for -h,
// on stderr.
func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("mutation", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.dir, "C", ".", "the module's `directory`")
	flags.StringVar(&o.changed, "changed", "", "take only packages with Go files that changed since `revision`")
	flags.IntVar(&o.sample, "n", 40, "how many mutants to run of each package; 0 runs all")
	flags.Uint64Var(&o.seed, "seed", 1, "picks the sample")
	flags.Float64Var(&o.minimum, "min", 0, "exit with 1 when a package's rate of killed mutants is below `percent`")
	flags.IntVar(&o.parallel, "p", runtime.NumCPU(), "how many mutants to run at a time")
	flags.DurationVar(&o.slack, "slack", 5*time.Second, "a mutant has hung after five times the tests' time and this `duration`")
	flags.BoolVar(&o.verbose, "v", false, "report each mutant as it ends")
	flags.Usage = func() {
		fmt.Fprintln(stderr, "usage: go run ./internal/mutation [flags] packages")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.patterns = flags.Args()
	if len(o.patterns) == 0 {
		return o, errors.New("name the packages, such as ./policy ./identity")
	}
	if o.sample < 0 || o.parallel < 1 || o.minimum < 0 || o.minimum > 100 {
		return o, errors.New("-n must be 0 or more, -p 1 or more, and -min a percentage")
	}
	return o, nil
}

// run is the whole command, apart from how the process ends.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parseOptions(args, stderr)
	if err != nil {
		return err
	}
	limitMemory()
	packages, err := selectPackages(ctx, o)
	if err != nil {
		return err
	}
	if len(packages) == 0 {
		fmt.Fprintln(stdout, "no package to test")
		return nil
	}
	scratch, err := os.MkdirTemp("", "mutation-")
	if err != nil {
		return err
	}
	// The test binaries of many mutants are large; nothing may stay behind.
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	var results []result
	for _, p := range packages {
		r := runner{pkg: p, options: o, scratch: scratch, progress: stderr}
		found, err := r.run(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", p.ImportPath, err)
		}
		results = append(results, found)
	}
	// Report everything before failing for the first package below the minimum.
	report(stdout, results)
	for _, r := range results {
		if r.rate() < o.minimum {
			return fmt.Errorf("%w: %s kills %.0f %%, and %.0f %% are asked for", errBelowMinimum, r.name, r.rate(), o.minimum)
		}
	}
	return nil
}
