package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/internal/output"
)

// An eraseRequest is one `agentd audit redact` or `agentd audit prune`.
type eraseRequest struct {
	logs logChoice
	yes  bool
	// done is what happens to a record, like redacted.
	done string
	// preview tells what one log would lose, or nothing.
	preview func(ctx context.Context, log namedLog) (loss string, err error)
	// warning says what cannot be undone.
	warning string
	// erase does it.
	erase func(ctx context.Context, keeper control.AuditKeeper) (auditchain.Erasure, error)
}

// An erasedLog is one line of the answer.
type erasedLog struct {
	Agent string `json:"agent"`
	// Count is how many records were erased or removed, and Records lists the
	// numbers of those that authorise it.
	Count   int64   `json:"count"`
	Records []int64 `json:"records"`
	// Error says why it was not done, or not all of it.
	Error string `json:"error,omitempty"`
}

// erase says what will be lost, asks, and does it in each log that loses something.
func (a *app) erase(ctx context.Context, r eraseRequest) error {
	affected, losses, err := a.previewErase(ctx, r)
	if err != nil {
		return err
	}
	if len(affected) == 0 {
		fmt.Fprintf(a.stderr, "no audit records match: nothing is %s.\n", r.done)
		return a.writeErased([]erasedLog{}, r.done)
	}
	if !r.yes {
		if err := a.confirm(ctx, append(losses, r.warning)); err != nil {
			return err
		}
	}
	all := []erasedLog{}
	var errs []error
	for _, s := range affected {
		one := erasedLog{Agent: s.agent, Records: []int64{}}
		err := daemon.KeepAudit(ctx, s.path, s.socket, func(keeper control.AuditKeeper) error {
			done, err := r.erase(ctx, keeper)
			one.Count, one.Records = done.Count, append(one.Records, done.Records...)
			return err
		})
		if err != nil {
			one.Error = err.Error()
			errs = append(errs, err)
		}
		all = append(all, one)
	}
	return errors.Join(errors.Join(errs...), a.writeErased(all, r.done))
}

// previewErase finds the logs that would lose something. They are closed again
// before anything happens: an erased page stays in the write-ahead log for as
// long as somebody reads.
func (a *app) previewErase(ctx context.Context, r eraseRequest) (affected []logSource, losses []string, err error) {
	err = a.openLogs(ctx, r.logs, func(logs []namedLog) error {
		for _, l := range logs {
			loss, err := r.preview(ctx, l)
			if err != nil {
				return err
			}
			if loss != "" {
				affected = append(affected, l.logSource)
				losses = append(losses, fmt.Sprintf("%s: %s", output.Printable(l.agent), loss))
			}
		}
		return nil
	})
	return affected, losses, err
}

func (a *app) writeErased(all []erasedLog, done string) error {
	if a.output != output.Table {
		return writeList(a, all)
	}
	for _, one := range all {
		if one.Error != "" && one.Count == 0 {
			continue // the error is told in full
		}
		numbers := make([]string, len(one.Records))
		for i, seq := range one.Records {
			numbers[i] = strconv.FormatInt(seq, 10)
		}
		fmt.Fprintf(a.stdout, "%s: %d records %s, under record %s\n", one.Agent, one.Count, done, strings.Join(numbers, ", "))
	}
	return nil
}

// confirm shows what is about to happen and asks whether it should. Where
// nobody can answer, it must have been said before.
func (a *app) confirm(ctx context.Context, lines []string) error {
	refused := usage("nobody is there to confirm that this cannot be undone: say it with --yes")
	file, ok := a.stdin.(*os.File)
	if !ok {
		return refused
	}
	if info, err := file.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return refused
	}
	fmt.Fprintf(a.stderr, "%s\nType yes to go on: ", strings.Join(lines, "\n"))
	answer, err := readAnswer(ctx, file)
	switch {
	case errors.Is(err, io.EOF) && answer == "": // /dev/null is a character device, too
		fmt.Fprintln(a.stderr)
		return refused
	case ctx.Err() != nil:
		fmt.Fprintln(a.stderr)
		return errors.New("interrupted: nothing was changed")
	case err != nil && !errors.Is(err, io.EOF):
		return fmt.Errorf("reading the answer: %w", err)
	case strings.TrimSpace(answer) != "yes":
		return errors.New("not confirmed: nothing was changed")
	}
	return nil
}

// readAnswer reads a line, or stops waiting for one when ctx ends.
func readAnswer(ctx context.Context, file io.Reader) (string, error) {
	const longest = 100
	type answer struct {
		line string
		err  error
	}
	got := make(chan answer, 1)
	go func() { // a read from a terminal cannot be called off: it ends with the process
		line, err := bufio.NewReader(io.LimitReader(file, longest)).ReadString('\n')
		got <- answer{line, err}
	}()
	select {
	case a := <-got:
		return a.line, a.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
