package checkpoint_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/agentd/agentd/auditchain/checkpoint"
)

// A witness signs what grows and refuses what was rewritten.
func ExampleKeeper() {
	ctx := context.Background()
	const origin = "agentd.audit/reviewer/1"
	logKey, err := checkpoint.GenerateKey(origin)
	if err != nil {
		log.Fatal(err)
	}
	witnessKey, err := checkpoint.GenerateKey("witness.example")
	if err != nil {
		log.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "witness")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	store, err := checkpoint.NewFolderStore(folder)
	if err != nil {
		log.Fatal(err)
	}
	witness := checkpoint.NewKeeper(func() *checkpoint.Key { return witnessKey }, store, func(string) []string { return []string{logKey.Verifier()} })

	for _, history := range []string{"as it was", "rewritten"} {
		state := checkpoint.Checkpoint{Origin: origin, Size: 1, Root: sha256.Sum256([]byte(history))}
		signed, err := checkpoint.Sign(state, logKey.Signer())
		if err != nil {
			log.Fatal(err)
		}
		old := int64(0)
		if history == "rewritten" {
			old = 1
		}
		_, err = witness.Cosign(ctx, signed, old, nil)
		fmt.Println(history, "refused:", errors.Is(err, checkpoint.ErrInconsistent))
	}
	// Output:
	// as it was refused: false
	// rewritten refused: true
}
