package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/otlptest"
)

// collectors are those of the scripts that run, by their folders.
type collectors struct {
	mu  sync.Mutex
	all map[string]*otlptest.Collector // guarded by mu
}

// start starts a collector, and sets OTLP to its URL, and COLLECTOR to that without its scheme: collector
func (c *collectors) start(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: collector")
	}
	made, err := otlptest.New()
	ts.Check(err)
	ts.Defer(made.Close)
	ts.Setenv("OTLP", made.URL)
	ts.Setenv("COLLECTOR", strings.TrimPrefix(made.URL, "http://"))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[string]*otlptest.Collector{}
	}
	c.all[ts.MkAbs(".")] = made
}

func (c *collectors) of(ts *testscript.TestScript) *otlptest.Collector {
	c.mu.Lock()
	defer c.mu.Unlock()
	made := c.all[ts.MkAbs(".")]
	if made == nil {
		ts.Fatalf("no collector runs")
	}
	return made
}

// tree waits until a trace has been sent as a file has it: spantree <trace id> <file>
// [<attribute>…]. The lines of the file are those of [otlptest.Tree].
func (c *collectors) tree(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: spantree <trace id> <file> [<attribute>…]")
	}
	collector, want := c.of(ts), ts.ReadFile(args[1])
	eventually.Succeeds(ts, "the trace is there", func() error {
		if got := otlptest.Tree(collector.Spans(args[0]), args[2:]...); got != want {
			return fmt.Errorf("the tree is\n%s\nand not\n%s", got, want)
		}
		return nil
	})
}

// span writes the id of a span to the file spanid: spanid <trace id> <service> <kind> <name>
func (c *collectors) span(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: spanid <trace id> <service> <kind> <name>")
	}
	for _, s := range c.of(ts).Spans(args[0]) {
		if s.Service == args[1] && s.Kind == args[2] && s.Name == args[3] {
			ts.Check(os.WriteFile(ts.MkAbs("spanid"), []byte(s.ID+"\n"), 0o600))
			return
		}
	}
	ts.Fatalf("there is no such span")
}

// auditSeqs waits until the records with all of the numbers 1 to n have been sent, and sets
// how collectors answer from then on: auditseqs <n> [away|refuse|take]
func (c *collectors) auditSeqs(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: auditseqs <n> [away|refuse|take]")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	collector := c.of(ts)
	eventually.Succeeds(ts, "the records are there", func() error {
		seen := map[string]bool{}
		for _, l := range collector.Logs() {
			seen[l.Attributes["agentd.audit.seq"]] = true
		}
		for i := 1; i <= n; i++ {
			if !seen[strconv.Itoa(i)] {
				return fmt.Errorf("no record %d", i)
			}
		}
		return nil
	})
	if len(args) == 2 {
		collector.Respond(map[string]otlptest.Answer{"away": {Status: 503, Code: 14}, "refuse": {Rejected: 1, Why: "too old"}}[args[1]])
	}
}

// logged waits until a line of the log has been sent: logged <trace id> <text>
func (c *collectors) logged(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: logged <trace id> <text>")
	}
	collector := c.of(ts)
	eventually.Succeeds(ts, "the line is there", func() error {
		for _, l := range collector.Logs() {
			if l.TraceID == args[0] && l.Body == args[1] {
				return nil
			}
		}
		return fmt.Errorf("%+v", collector.Logs())
	})
}

// unsaid checks that nothing that was sent has a text: unsaid <text>
func (c *collectors) unsaid(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: unsaid <text>")
	}
	for _, s := range c.of(ts).Spans("") {
		if strings.Contains(s.Raw.String(), args[0]) {
			ts.Check(errors.New("it was sent: " + s.Raw.String()))
		}
	}
}
