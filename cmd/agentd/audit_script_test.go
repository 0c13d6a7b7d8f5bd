package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/internal/eventually"
)

// A scriptRecord is a line of the files that the command auditlog reads.
type scriptRecord struct {
	Kind                                           auditchain.Kind
	Tenant, Peer, Capability, Correlation, Session string
	Side                                           auditchain.Side
	Age                                            string // before now; it may only decrease along a log
	Body                                           json.RawMessage
}

// auditLog appends the records of a file, one JSON object a line, to a log that
// it creates if need be: auditlog <database> <file>
func auditLog(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: auditlog <database> <file>")
	}
	var age atomic.Int64
	now := func() time.Time { return time.Now().Add(-time.Duration(age.Load())) }
	log, err := auditchain.Open(context.Background(), ts.MkAbs(args[0]), auditchain.Options{Name: "script", Now: now})
	ts.Check(err)
	for line := range strings.Lines(ts.ReadFile(args[1])) {
		var r scriptRecord
		ts.Check(json.Unmarshal([]byte(line), &r))
		if r.Age != "" {
			d, err := time.ParseDuration(r.Age)
			ts.Check(err)
			age.Store(int64(d))
		}
		_, err := log.Append(context.Background(), auditchain.Record{
			Kind: r.Kind, Tenant: r.Tenant, Body: r.Body, Peer: r.Peer, Capability: r.Capability,
			Side: r.Side, Correlation: r.Correlation, Session: r.Session,
		})
		ts.Check(err)
	}
	ts.Check(log.Close())
}

// witnessed shows the newest checkpoint of a log to a witness that keeps its
// states in a folder: witnessed <folder> <database>
func witnessed(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: witnessed <folder> <database>")
	}
	ctx := context.Background()
	log, err := auditchain.OpenReader(ctx, ts.MkAbs(args[1]))
	ts.Check(err)
	defer log.Close()
	keys, err := log.PublicKeys()
	ts.Check(err)
	note, err := log.Checkpoint()
	ts.Check(err)
	key, err := checkpoint.GenerateKey("witness")
	ts.Check(err)
	store, err := checkpoint.NewFolderStore(ts.MkAbs(args[0]))
	ts.Check(err)
	keeper := checkpoint.NewKeeper(func() *checkpoint.Key { return key }, store, func(string) []string { return keys })
	_, err = keeper.Cosign(ctx, note, 0, tlog.TreeProof{})
	ts.Check(err)
}

// exits runs a command that must end with a status: exits <status> <command>…
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits <status> <command>…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// waitFor waits until a file that another process writes has a line that
// matches: waitfor <file> <regexp>
func waitFor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: waitfor <file> <regexp>")
	}
	pattern := regexp.MustCompile(`(?m)` + args[1])
	eventually.Succeeds(ts, args[0]+" matches", func() error {
		text, err := os.ReadFile(ts.MkAbs(args[0]))
		if err == nil && !pattern.Match(text) {
			err = fmt.Errorf("no %q in %s", args[1], text)
		}
		return err
	})
}

// eventuallyMatches runs a command again and again until its standard output has a line
// that matches: eventually <regexp> <command>…
func eventuallyMatches(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: eventually <regexp> <command>…")
	}
	pattern := regexp.MustCompile(`(?m)` + args[0])
	eventually.Succeeds(ts, "standard output matches", func() error {
		err := ts.Exec(args[1], args[2:]...)
		out := ts.ReadFile("stdout")
		if pattern.MatchString(out) {
			return nil
		}
		return fmt.Errorf("no %q in %s (%v)", args[0], out, err)
	})
}

// compareSeqs checks the numbers of the records in JSON lines, on standard
// output or in a file: cmpseqs [-file <file>] <seq>…
func compareSeqs(ts *testscript.TestScript, neg bool, args []string) {
	file := "stdout"
	if len(args) > 1 && args[0] == "-file" {
		file, args = args[1], args[2:]
	}
	if neg || len(args) == 0 {
		ts.Fatalf("usage: cmpseqs [-file <file>] <seq>…")
	}
	var got []string
	for line := range strings.Lines(ts.ReadFile(file)) {
		var r struct{ Seq int64 }
		ts.Check(json.Unmarshal([]byte(line), &r))
		got = append(got, strconv.FormatInt(r.Seq, 10))
	}
	if !slices.Equal(got, args) {
		ts.Fatalf("records %v, want %v", got, args)
	}
}
