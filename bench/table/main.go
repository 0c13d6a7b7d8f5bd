package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
)

func main() {
	count := flag.Int("count", 6, "how often each benchmark runs; the tables have the shortest time")
	length := flag.String("benchtime", "1s", "how long each run of a benchmark takes")
	from := flag.String("from", "", "a file with results, instead of a run")
	save := flag.String("save", "", "a file for the results")
	page := flag.String("o", "../docs/benchmarks.md", "the page to write")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := update(ctx, *page, *from, *save, *count, *length); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// update writes the tables anew.
func update(ctx context.Context, page, from, save string, count int, length string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	results, err := output(ctx, from, count, length)
	if err != nil {
		return err
	}
	if save != "" {
		if err := os.WriteFile(save, results, 0o600); err != nil {
			return err
		}
	}
	all, err := parse(bytes.NewReader(results))
	if err != nil {
		return err
	}
	for name, table := range tables(all) {
		if text, err = replace(text, name, table); err != nil {
			return err
		}
	}
	return os.WriteFile(page, text, 0o644) //nolint:gosec // a page of the documentation is for everybody to read
}

// output returns the results of a run, or of an earlier one. All benchmarks run before any
// runs again, so that what else the machine does hits the engines alike.
func output(ctx context.Context, from string, count int, length string) ([]byte, error) {
	if from != "" {
		return os.ReadFile(from)
	}
	var results bytes.Buffer
	for range count {
		for _, command := range [][]string{
			{"go", "test", "-run", "^$", "-bench", ".", "-timeout", "3h", "-benchtime", length, "."},
			{"node", "ajv/bench.mjs", "1"},
		} {
			cmd := exec.CommandContext(ctx, command[0], command[1:]...)
			cmd.Stdout, cmd.Stderr = io.MultiWriter(&results, os.Stderr), os.Stderr
			if err := cmd.Run(); err != nil {
				return nil, fmt.Errorf("%s: %w", strings.Join(command, " "), err)
			}
		}
	}
	return results.Bytes(), nil
}

// replace puts a table between its markers.
func replace(page []byte, name, table string) ([]byte, error) {
	begin, end := []byte("<!-- table: "+name+" -->\n"), []byte("<!-- end of "+name+" -->")
	before, rest, ok := bytes.Cut(page, begin)
	_, after, closed := bytes.Cut(rest, end)
	if !ok || !closed {
		return nil, fmt.Errorf("the page has no place for the table %s", name)
	}
	return bytes.Join([][]byte{before, begin, []byte(table), end, after}, nil), nil
}
