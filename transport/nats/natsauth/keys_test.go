package natsauth_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/transport/nats/natsauth"
)

func TestKeysAreKept(t *testing.T) {
	rules, err := natsauth.Derive(triage(t), natsauth.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "keys")
	first, err := rules.EnsureKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(natsauth.KeyFile(dir, "desk"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("seed %v, %v; want it readable by its owner alone", info.Mode(), err)
	}
	if err := os.Remove(natsauth.KeyFile(dir, "desk")); err != nil {
		t.Fatal(err)
	}
	second, err := rules.EnsureKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	if first["reviewer"] != second["reviewer"] || first["desk"] == second["desk"] {
		t.Errorf("keys %v, then %v", first, second)
	}
	if err := os.WriteFile(natsauth.KeyFile(dir, "desk"), []byte("no seed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := rules.EnsureKeys(dir); err == nil || !strings.Contains(err.Error(), "delete it for a new key") {
		t.Errorf("a damaged seed: %v", err)
	}
	if err := rules.WriteConfig(io.Discard, nil); err == nil {
		t.Error("a configuration without keys was written")
	}
}

func ExampleInboxPrefix() {
	fmt.Println(natsauth.InboxPrefix("team.notes"), natsauth.ServiceName("team.notes"))
	// Output: _INBOX.team+notes team_notes
}
