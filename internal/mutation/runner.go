package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A verdict is what the tests make of a mutant.
type verdict uint8

const (
	killed verdict = iota
	timedOut
	survived
	uncovered // survived: no test enters its block
	invalid   // it does not compile
)

func (v verdict) String() string {
	return [...]string{"killed", "timed out", "SURVIVED", "SURVIVED (not covered)", "does not compile"}[v]
}

// A runner runs the mutants of one package.
type runner struct {
	pkg      pkg
	options  options
	scratch  string
	progress io.Writer

	covered coverage
	timeout time.Duration
}

// run samples the package's mutants until as many have run as were asked for.
func (r *runner) run(ctx context.Context) (result, error) {
	began := time.Now()
	all, err := mutantsOf(r.pkg)
	if err != nil {
		return result{}, err
	}
	if err := r.baseline(ctx); err != nil {
		return result{}, err
	}
	shuffle(all, r.options.seed, r.pkg.ImportPath)
	defer removeFailFiles(r.pkg.Dir)()
	found, err := r.sample(ctx, all)
	found.name, found.mutants, found.took = r.pkg.name(), len(all), time.Since(began)
	return found, err
}

// removeFailFiles returns a function that removes the files in which pgregory.net/rapid
// keeps the inputs of failed properties, unless dir has some already: they are about
// mutants, and the next run of the real tests would replay them.
func removeFailFiles(dir string) func() {
	kept := filepath.Join(dir, "testdata", "rapid")
	if _, err := os.Stat(kept); err == nil {
		return func() {}
	}
	return func() {
		_ = os.RemoveAll(kept)            // what stays does no harm but to be replayed
		_ = os.Remove(filepath.Dir(kept)) // fails if testdata holds more
	}
}

// sample gives mutants to workers, and stops when enough have been judged.
func (r *runner) sample(ctx context.Context, all []mutant) (result, error) {
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		out   result // guarded by mu
		next  int    // guarded by mu
		fault error  // guarded by mu
	)
	take := func() (mutant, bool) {
		mu.Lock()
		defer mu.Unlock()
		// Mutants that run count as judged. One that turns out not to compile gives
		// its place back, and another takes it.
		enough := r.options.sample > 0 && out.judged()+out.running >= r.options.sample
		if fault != nil || enough || next == len(all) {
			return mutant{}, false
		}
		next++
		out.running++
		return all[next-1], true
	}
	for worker := range r.options.parallel {
		wg.Go(func() {
			// One folder for each worker, reused: the next mutant overwrites the
			// files of the last.
			dir := filepath.Join(r.scratch, strconv.Itoa(worker))
			for m, ok := take(); ok; m, ok = take() {
				v, err := r.judge(ctx, m, dir)
				mu.Lock()
				out.running--
				fault = errors.Join(fault, err)
				out.add(m, v)
				if r.options.verbose {
					fmt.Fprintf(r.progress, "%s: %s:%d: %s: %s\n", r.pkg.name(), filepath.Base(m.file), m.line, v, m.change())
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return out, fault
}

// baseline runs the tests on the code as it is. They must pass; what they cover
// and how long they take is what mutants are measured by.
func (r *runner) baseline(ctx context.Context) error {
	dir := filepath.Join(r.scratch, "baseline")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	binary, profile := filepath.Join(dir, "package.test"), filepath.Join(dir, "cover.out")
	if _, err := output(ctx, r.options.dir, "go", "test", "-c", "-vet=off", "-cover", "-o", binary, r.pkg.ImportPath); err != nil {
		return err
	}
	began := time.Now()
	cmd := r.command(ctx, dir, binary, "-test.coverprofile="+profile)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the tests fail without a mutation: %w\n%s", err, out.Bytes())
	}
	// Generous, since other processes may want the processors: a mutant that
	// is slow, not hung, would count as killed.
	r.timeout = r.options.slack + 5*time.Since(began)
	data, err := os.ReadFile(profile)
	if err != nil {
		return err
	}
	r.covered, err = parseCoverage(string(data))
	return err
}

// judge builds and tests one mutant.
func (r *runner) judge(ctx context.Context, m mutant, dir string) (verdict, error) {
	src, err := os.ReadFile(m.file)
	if err != nil {
		return invalid, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return invalid, err
	}
	binary, err := r.build(ctx, m, src, dir)
	if err != nil || binary == "" {
		return invalid, errors.Join(err, ctx.Err())
	}
	// After the build: a mutant that does not compile must not count as a survivor,
	// even in code that no test enters.
	if r.covered.misses(r.pkg.ImportPath+"/"+filepath.Base(m.file), m.line, column(src, m.start)) {
		return uncovered, nil
	}
	limited, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	err = r.command(limited, dir, binary, "-test.failfast").Run()
	switch {
	// The interruption of the whole run also ends limited; it is no verdict on the
	// mutant.
	case ctx.Err() != nil:
		return invalid, ctx.Err()
	case limited.Err() != nil:
		return timedOut, nil
	case err != nil:
		return killed, nil
	}
	return survived, nil
}

// build compiles the package's test with the mutant; binary is empty when it
// does not compile.
func (r *runner) build(ctx context.Context, m mutant, src []byte, dir string) (binary string, err error) {
	changed := filepath.Join(dir, "mutant.go")
	if err := os.WriteFile(changed, m.apply(src), 0o600); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {m.file: changed}})
	if err != nil {
		return "", err
	}
	overlayFile := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlayFile, overlay, 0o600); err != nil {
		return "", err
	}
	binary = filepath.Join(dir, "package.test")
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlayFile, "-o", binary, r.pkg.ImportPath)
	cmd.Dir = r.options.dir
	// The compiler rejects the mutant, or the command was interrupted: judge tells
	// the two apart by ctx.
	if cmd.Run() != nil {
		return "", nil
	}
	return binary, nil
}

// command runs a test binary as go test does, in the package's folder, with
// temporary files of its own that go with the scratch folder.
func (r *runner) command(ctx context.Context, tmp, binary string, flags ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, binary, flags...)
	cmd.Dir = r.pkg.Dir
	// One processor for each: -p mutants run side by side, and the timeout compares
	// with a baseline that ran the same way.
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "TMPDIR="+tmp)
	cmd.WaitDelay = time.Second // a child of the test may hold its output open
	return cmd
}

// column is the 1-based column of an offset.
func column(src []byte, offset int) int {
	return offset - bytes.LastIndexByte(src[:offset], '\n')
}

// coverage holds the blocks of a package by file, and whether a test enters them.
type coverage map[string][]block

type block struct {
	fromLine, fromColumn, toLine, toColumn int
	entered                                bool
}

// misses reports whether a place lies in a block that no test enters. Code outside
// of blocks, such as a constant, is not missed.
func (c coverage) misses(file string, line, column int) bool {
	for _, b := range c[file] {
		after := line > b.fromLine || line == b.fromLine && column >= b.fromColumn
		before := line < b.toLine || line == b.toLine && column < b.toColumn
		if after && before {
			return !b.entered
		}
	}
	return false
}

// parseCoverage reads a profile as go test writes it.
func parseCoverage(profile string) (coverage, error) {
	found := coverage{}
	for line := range strings.Lines(profile) {
		if strings.HasPrefix(line, "mode:") {
			continue
		}
		colon := strings.LastIndexByte(line, ':')
		if colon < 0 {
			return nil, fmt.Errorf("no line of a coverage profile: %q", line)
		}
		var b block
		var statements, count int
		if _, err := fmt.Sscanf(line[colon+1:], "%d.%d,%d.%d %d %d", &b.fromLine, &b.fromColumn, &b.toLine, &b.toColumn, &statements, &count); err != nil {
			return nil, fmt.Errorf("no line of a coverage profile: %q: %w", line, err)
		}
		b.entered = count > 0
		found[line[:colon]] = append(found[line[:colon]], b)
	}
	return found, nil
}
