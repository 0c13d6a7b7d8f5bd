package export_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/export"
)

// The second run finds nothing left to export.
func ExampleRun() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "export")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	l, err := auditchain.Open(ctx, filepath.Join(folder, "audit.db"), auditchain.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	if _, err := l.Append(ctx, auditchain.Record{Kind: auditchain.KindRPCCall}); err != nil {
		log.Fatal(err)
	}
	for range 2 {
		cursor, err := export.OpenCursor(filepath.Join(folder, "siem.cursor"))
		if err != nil {
			log.Fatal(err)
		}
		sink, err := export.OpenFileSink(filepath.Join(folder, "audit.jsonl"))
		if err != nil {
			log.Fatal(err)
		}
		result, err := export.Run(ctx, l.Reader, cursor, sink, export.Options{Format: export.JSONL})
		sink.Close()
		cursor.Close()
		fmt.Println(result.Exported, err)
	}
	// Output:
	// 1 <nil>
	// 0 <nil>
}
