package audit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/agentd/agentd/internal/cli"
)

// confirm prints lines and asks on the terminal whether to go on. Without a
// terminal nobody can answer, and the command line must have --yes.
func confirm(ctx context.Context, env *cli.Env, lines []string) error {
	noAnswer := cli.Usage("this cannot be undone, and standard input is no terminal to confirm it on: add --yes")
	file, ok := env.Stdin.(*os.File)
	if !ok {
		return noAnswer
	}
	if info, err := file.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return noAnswer
	}
	fmt.Fprintf(env.Stderr, "%s\nType yes to go on: ", strings.Join(lines, "\n"))
	answer, err := readLine(ctx, file)
	switch {
	case errors.Is(err, io.EOF) && answer == "": // /dev/null is a character device, too
		fmt.Fprintln(env.Stderr)
		return noAnswer
	case ctx.Err() != nil:
		fmt.Fprintln(env.Stderr)
		return errors.New("interrupted: nothing was changed")
	case err != nil && !errors.Is(err, io.EOF):
		return fmt.Errorf("reading the answer: %w", err)
	case strings.TrimSpace(answer) != "yes":
		return errors.New("not confirmed: nothing was changed")
	}
	return nil
}

// readLine reads a line, or stops waiting for one when ctx ends.
func readLine(ctx context.Context, file io.Reader) (string, error) {
	const maxBytes = 100
	type result struct {
		line string
		err  error
	}
	done := make(chan result, 1)
	// A read from a terminal cannot be cancelled. When ctx ends first, the
	// goroutine stays blocked until the process exits, which is then imminent.
	go func() {
		line, err := bufio.NewReader(io.LimitReader(file, maxBytes)).ReadString('\n')
		done <- result{line, err}
	}()
	select {
	case r := <-done:
		return r.line, r.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
