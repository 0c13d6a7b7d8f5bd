package auditchain_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/internal/record"
)

// crashChild, in the environment, makes the test binary a writer that runs
// until it is killed.
const crashChild = "AUDITCHAIN_CRASH_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(crashChild); path != "" {
		runCrashChild(path)
		return
	}
	if path := os.Getenv(limitedChild); path != "" {
		runLimitedChild(path)
		return
	}
	os.Exit(m.Run())
}

// runCrashChild appends from several goroutines and prints each record that was
// acknowledged, while it erases, prunes and changes keys. It never ends.
func runCrashChild(path string) {
	l, err := auditchain.Open(context.Background(), path, auditchain.Options{CheckpointRecords: 20, CheckpointInterval: 5 * time.Millisecond})
	if err != nil {
		fmt.Println("error", err)
		return
	}
	var n atomic.Int64
	for range 5 {
		go func() {
			for {
				id := fmt.Sprintf("%d-%d", os.Getpid(), n.Add(1))
				body, _ := json.Marshal(map[string]string{"correlationId": id, "sessionId": id[len(id)-1:]})
				seq, err := l.Append(context.Background(), auditchain.Record{Kind: auditchain.KindRPCCall, Body: body})
				if err != nil {
					fmt.Println("error", err)
					return
				}
				fmt.Fprintf(os.Stdout, "%d %s\n", seq, id)
			}
		}()
	}
	ctx := context.Background()
	go func() { // packs, of which some are redacted and pruned
		for {
			batch := make([]auditchain.Record, 12)
			for i := range batch {
				batch[i] = auditchain.Record{Kind: auditchain.KindRPCCall, Body: fmt.Appendf(nil, `{"sessionId":"%d"}`, i%10)}
			}
			if _, err := l.AppendAll(ctx, batch); err != nil {
				fmt.Println("error", err)
				return
			}
		}
	}()
	for i := 0; ; i++ {
		switch i % 4 {
		case 0:
			_, err = l.RotateKey(ctx)
		case 1, 2:
			_, err = l.Redact(ctx, auditchain.Filter{Session: fmt.Sprint(i % 10)}, "crash test")
		case 3:
			_, err = l.Prune(ctx, time.Now().Add(-200*time.Millisecond), "crash test")
		}
		if err != nil {
			fmt.Println("error", err)
			return
		}
	}
}

// A killed writer has lost nothing that it acknowledged, and what it left
// verifies.
func TestKilledWriter(t *testing.T) {
	t.Parallel() // it mostly waits for processes to start
	rounds := 40
	if testing.Short() || raceEnabled {
		rounds = 20
	}
	folder, path := t.TempDir(), ""
	unsigned := 0
	for round := range rounds {
		if round%10 == 0 { // a log that survives 10 kills is left alone
			path = filepath.Join(folder, fmt.Sprintf("audit-%d.db", round))
		}
		acknowledged := killWriter(t, path, rand.IntN(60))
		l, err := auditchain.Open(context.Background(), path, auditchain.Options{CheckpointInterval: time.Hour})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if l.Recovery().Unsigned > 0 {
			unsigned++
		}
		checkAcknowledged(t, l, acknowledged)
		if report := audittest.Verify(t, l.Reader, auditchain.VerifyOptions{}); !report.OK() || report.Unsigned() != 0 {
			t.Fatalf("round %d: %+v", round, report)
		}
		audittest.Close(t, l)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	report := audittest.VerifyPath(t, path, auditchain.VerifyOptions{})
	t.Logf("%d kills, %d of them left unsigned records; the last log: %d records, %d erased, %d pruned, %d keys",
		rounds, unsigned, report.Records, report.Erased, report.Pruned, len(report.Keys))
}

// killWriter runs a writer, kills it some time after the given number of
// acknowledgements, and returns those that it got out, by number.
func killWriter(t *testing.T, path string, after int) map[int64]string {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), crashChild+"="+path)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	acknowledged := map[int64]string{}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var seq int64
		var id string
		if _, err := fmt.Sscanf(lines.Text(), "%d %s", &seq, &id); err != nil {
			if lines.Err() == nil && len(acknowledged) < after {
				t.Errorf("the writer says: %s", lines.Text())
			}
			continue // a line cut short by the kill
		}
		acknowledged[seq] = id
		if len(acknowledged) == after+1 {
			child.Process.Kill()
		}
	}
	child.Wait()
	return acknowledged
}

func checkAcknowledged(t *testing.T, l *auditchain.Log, acknowledged map[int64]string) {
	t.Helper()
	var pruned record.Pruning
	for _, e := range audittest.Collect(t, l.Reader, auditchain.Filter{Kinds: []auditchain.Kind{auditchain.KindPrune}}) {
		if err := json.Unmarshal(e.Body, &pruned); err != nil { // the newest one counts
			t.Fatal(err)
		}
	}
	found := map[int64]auditchain.Entry{}
	for _, e := range audittest.Collect(t, l.Reader, auditchain.Filter{}) {
		found[e.Seq] = e
	}
	for seq, id := range acknowledged {
		if seq <= pruned.Through {
			continue
		}
		if e, ok := found[seq]; !ok || !e.Erased() && e.Correlation != id {
			t.Errorf("record %d was acknowledged as %s and is %+v", seq, id, e)
		}
	}
}
