package auditchain_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/internal/audittest"
)

// Every erasure and every change of keys names who has asked for it: whom the context
// names, or else this process.
func TestWhoChangedTheLog(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{Now: audittest.SteppedClock()})
	audittest.Fill(t, l, 20)
	uid := uint32(1000)
	ada := auditchain.Actor{UID: &uid, User: "ada", PID: 17, Executable: "/usr/bin/" + strings.Repeat("x", 600)}
	asAda := auditchain.WithActor(t.Context(), func() auditchain.Actor { return ada })
	for _, ctx := range []context.Context{asAda, t.Context()} {
		var erasable auditchain.Entry
		for _, e := range audittest.Collect(t, l.Reader, auditchain.Filter{}) {
			if !e.Erased() && !e.Kind.Reserved() && e.Correlation != "" {
				erasable = e
			}
		}
		redacted, err := l.Redact(ctx, auditchain.Filter{Correlation: erasable.Correlation}, "r")
		if err != nil || len(redacted.Records) != 1 {
			t.Fatalf("%+v, %v", redacted, err)
		}
		oldest := audittest.Collect(t, l.Reader, auditchain.Filter{Limit: 1, Order: auditchain.OldestFirst})[0]
		pruned, err := l.Prune(ctx, oldest.Time.Add(time.Millisecond), "p")
		if err != nil || len(pruned.Records) != 1 {
			t.Fatalf("%+v, %v", pruned, err)
		}
		if _, err := l.RotateKey(ctx); err != nil {
			t.Fatal(err)
		}
		rotated := audittest.Collect(t, l.Reader, auditchain.Filter{Kinds: []auditchain.Kind{auditchain.KindCheckpoint}, Order: auditchain.NewestFirst, Limit: 1})[0]
		for _, seq := range []int64{redacted.Records[0], pruned.Records[0], rotated.Seq} {
			wantActor(t, audittest.Get(t, l.Reader, seq), ctx == asAda)
		}
	}
	audittest.Close(t, l)
	report := audittest.VerifyPath(t, l.Path(), auditchain.VerifyOptions{})
	if len(report.Faults) > 0 {
		t.Errorf("faults %v", report.Faults)
	}
	audittest.Close(t, audittest.OpenAt(t, l.Path(), auditchain.Options{}))
}

// wantActor checks who a record names: ada, or this process.
func wantActor(t *testing.T, e auditchain.Entry, ada bool) {
	t.Helper()
	var body struct{ Actor auditchain.Actor }
	if err := json.Unmarshal(e.Body, &body); err != nil {
		t.Fatal(err)
	}
	a := body.Actor
	if ada {
		if a.UID == nil || *a.UID != 1000 || a.User != "ada" || a.PID != 17 || len(a.Executable) > 520 || !strings.HasPrefix(a.Executable, "/usr/bin/x") {
			t.Errorf("%s names %+v", e.Kind, a)
		}
		return
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if a.UID == nil || int(*a.UID) != os.Getuid() || a.PID != os.Getpid() || a.Executable != program {
		t.Errorf("%s names %+v", e.Kind, a)
	}
}
