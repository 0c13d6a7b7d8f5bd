package mcpbridge_test

import (
	"fmt"
	"runtime"
	"testing"
	"weak"

	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/mcpbridge"
)

// A client may have any name where the files list none. Of very many that are gone, few are
// kept in memory; one that is there keeps its server, however many come and go meanwhile.
func TestClientsAreForgotten(t *testing.T) {
	eras(t, func(t *testing.T, era string) {
		a := &agent{}
		a.offer(peer(t, "librarian", search)...)
		b := open(t, a, mcpbridge.Options{})
		connect(t, b, era, nil) // desk
		there, err := b.Server(desk)
		if err != nil {
			t.Fatal(err)
		}
		gone, err := b.Server(mcpbridge.Client{Name: "gone"})
		if err != nil {
			t.Fatal(err)
		}
		forgotten := weak.Make(gone) // nothing reads gone after this
		for i := range 200 {
			if _, err := b.Server(mcpbridge.Client{Name: fmt.Sprint("one-of-many-", i)}); err != nil {
				t.Fatal(err)
			}
		}
		eventually.Holds(t, "the server of a client that is gone is freed", func() bool {
			runtime.GC()
			return forgotten.Value() == nil
		})
		if again, err := b.Server(desk); err != nil || again != there {
			t.Errorf("the client that is there has another server, %v", err)
		}
		if _, err := b.Server(mcpbridge.Client{Name: "gone"}); err != nil {
			t.Errorf("a client that comes again: %v", err)
		}
	})
}
