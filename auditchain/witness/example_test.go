package witness_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/witness"
)

// One agent keeps the state of another's log. When that is replaced by a new
// one, with a new key, the witness says so.
func Example() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "witness")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	open := func(name string) *auditchain.Log {
		l, err := auditchain.Open(ctx, filepath.Join(folder, name), auditchain.Options{})
		if err != nil {
			log.Fatal(err)
		}
		return l
	}
	own := open("librarian.db")
	defer own.Close()
	registry, err := witness.OpenRegistry(filepath.Join(folder, "witness"))
	if err != nil {
		log.Fatal(err)
	}
	store, err := checkpoint.NewFolderStore(filepath.Join(folder, "witness"))
	if err != nil {
		log.Fatal(err)
	}
	server := witness.NewServer(own.Keeper(store, registry.Keys), registry)
	ask := func(ctx context.Context, question []byte) ([]byte, error) { // in life: over the network
		answer, _ := server.Answer(ctx, "agent://reviewer", question) // the error is in the answer
		return answer, nil
	}

	for _, name := range []string{"reviewer.db", "rewritten.db"} {
		l := open(name)
		if _, err := l.Append(ctx, auditchain.Record{Kind: auditchain.KindLifecycle, Body: []byte(`{"event":"started"}`)}); err != nil {
			log.Fatal(err)
		}
		if _, err := l.Checkpoint(ctx); err != nil {
			log.Fatal(err)
		}
		_, err := l.ShowTo(ctx, witness.NewRemote("agent://librarian", ask, l))
		fmt.Println(name, "refused:", errors.Is(err, checkpoint.ErrInconsistent))
		if err := l.Close(); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// reviewer.db refused: false
	// rewritten.db refused: true
}
