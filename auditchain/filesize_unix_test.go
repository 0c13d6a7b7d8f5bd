//go:build unix && !freebsd

package auditchain_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/internal/audittest"
)

// limitedChild, in the environment, makes the test binary a writer whose files the
// system lets grow to a size and no further.
const limitedChild = "AUDITCHAIN_LIMITED_CHILD"

// runLimitedChild appends until it cannot, and prints what was acknowledged.
func runLimitedChild(path string) {
	signal.Ignore(syscall.SIGXFSZ) // so that a write fails with EFBIG (setrlimit(2))
	var size uint64
	fmt.Sscan(os.Getenv("SIZE"), &size)
	l, err := auditchain.Open(context.Background(), path, auditchain.Options{})
	if err == nil {
		err = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: size})
	}
	if err != nil {
		fmt.Println("error", err)
		return
	}
	var all sync.WaitGroup
	for c := range 8 {
		all.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("%d-%d", c, i)
				seq, err := l.Append(context.Background(), auditchain.Record{Kind: auditchain.KindRPCCall, Correlation: id, Body: []byte(`{"fill":"` + strings.Repeat("x", 500) + `"}`)})
				if err != nil {
					fmt.Println("refused", auditchain.CodeOf(err))
					return
				}
				fmt.Printf("%d %s\n", seq, id)
			}
		})
	}
	all.Wait()
	_ = l.Close() // it may not be able to sign what it has
}

// A file that the system lets grow no further is a write that fails in the middle
// of SQLite: nothing that was acknowledged is lost, nothing is there by half, and
// the log goes on where there is room.
func TestFileSizeLimit(t *testing.T) {
	t.Parallel()
	for _, size := range []int{200_000, 300_001, 523_456} {
		path := filepath.Join(t.TempDir(), "audit.db")
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), limitedChild+"="+path, fmt.Sprintf("SIZE=%d", size))
		child.Stderr = os.Stderr
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		acknowledged, refused := map[int64]string{}, map[string]int{}
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var seq int64
			var id string
			if _, err := fmt.Sscanf(lines.Text(), "%d %s", &seq, &id); err == nil {
				acknowledged[seq] = id
			} else {
				refused[lines.Text()]++
			}
		}
		if err := child.Wait(); err != nil {
			t.Fatalf("%d bytes: the writer crashed: %v", size, err)
		}
		if refused["refused "+auditchain.CodeIO.String()]+refused["refused "+auditchain.CodeFull.String()] != 8 || len(acknowledged) == 0 {
			t.Errorf("%d bytes: %d records acknowledged, refusals %v", size, len(acknowledged), refused)
		}
		l, err := auditchain.Open(context.Background(), path, auditchain.Options{})
		if err != nil {
			t.Fatal(err)
		}
		checkAcknowledged(t, l, acknowledged)
		audittest.Fill(t, l, 10)
		if report := audittest.Verify(t, l.Reader, auditchain.VerifyOptions{}); !report.OK() {
			t.Errorf("%d bytes: %+v", size, report)
		}
		audittest.Close(t, l)
	}
}
