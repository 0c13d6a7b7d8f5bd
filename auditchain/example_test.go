package auditchain_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/proof"
)

// open opens a log in a folder of its own.
func open() (*auditchain.Log, func()) {
	folder, err := os.MkdirTemp("", "audit")
	if err != nil {
		log.Fatal(err)
	}
	l, err := auditchain.Open(context.Background(), filepath.Join(folder, "audit.db"), auditchain.Options{
		Name: "concierge",
		Now:  func() time.Time { return time.UnixMilli(1790000000000) },
	})
	if err != nil {
		log.Fatal(err)
	}
	return l, func() { l.Close(); os.RemoveAll(folder) }
}

func Example() {
	ctx := context.Background()
	l, done := open()
	defer done()

	record, err := auditchain.SchemaViolation{
		CapabilityName: "review-pr", PeerID: "agent://pr-reviewer", Side: auditchain.SideRequest, CorrelationID: "c-1",
		Violations: []auditchain.Violation{{Path: "/severity", Message: "value not in enum"}},
	}.Record()
	if err != nil {
		log.Fatal(err)
	}
	seq, err := l.Append(ctx, record) // durable when it returns
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("appended", seq)

	for entry, err := range l.Query(ctx, auditchain.Filter{Peer: "agent://pr-reviewer", Order: auditchain.NewestFirst, Limit: 10}) {
		if err != nil {
			log.Fatal(err)
		}
		text, _ := json.Marshal(&entry)
		fmt.Println(string(text))
	}

	report, err := l.Verify(ctx, auditchain.VerifyOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("intact:", report.OK(), "records:", report.Records)
	// Output:
	// appended 1
	// {"kind":"capability_schema_violation","ts":1790000000000,"tenantId":"default","capabilityName":"review-pr","correlationId":"c-1","peerId":"agent://pr-reviewer","side":"request","violations":[{"message":"value not in enum","path":"/severity"}]}
	// intact: true records: 1
}

// One record is proven to somebody who has the log's public key and nothing
// else.
func ExampleReader_Prove() {
	ctx := context.Background()
	l, done := open()
	defer done()
	seq, err := l.Append(ctx, auditchain.Record{Kind: auditchain.KindRPCCall, Body: json.RawMessage(`{"status":"ok"}`)})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := l.Checkpoint(ctx); err != nil { // else one is signed every few seconds
		log.Fatal(err)
	}
	made, err := l.Prove(ctx, seq, auditchain.ProveOptions{})
	if err != nil {
		log.Fatal(err)
	}
	file, _ := json.Marshal(made)
	public, _ := l.PublicKeys()

	// Elsewhere, offline:
	read, err := proof.Parse(file)
	if err != nil {
		log.Fatal(err)
	}
	keys, err := checkpoint.NewKeys(public...)
	if err != nil {
		log.Fatal(err)
	}
	result, err := read.Verify(keys)
	fmt.Println(err, result.Size, string(read.Record.Content.Body))
	// Output: <nil> 1 {"status":"ok"}
}

func ExampleLog_Redact() {
	ctx := context.Background()
	l, done := open()
	defer done()
	for _, session := range []string{"alice", "bob", "alice"} {
		if _, err := l.Append(ctx, auditchain.Record{Kind: auditchain.KindRPCCall, Session: session}); err != nil {
			log.Fatal(err)
		}
	}
	erasure, err := l.Redact(ctx, auditchain.Filter{Session: "alice"}, "subject request 17")
	if err != nil {
		log.Fatal(err)
	}
	report, err := l.Verify(ctx, auditchain.VerifyOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("erased:", erasure.Count, "intact:", report.OK())
	// Output: erased: 2 intact: true
}
