package identity

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/identity/sealed"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/clitest"
)

// recipient makes an identity of age and a file that has it.
func recipient(t *testing.T, env *clitest.Env) (public, file string) {
	t.Helper()
	own, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return own.Recipient().String(), env.Write(t, "age.key", own.String()+"\n")
}

// The keys of one host become those of another: all of them, with the times of a
// rotation, and readable by their owner alone.
func TestExportAndImport(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	public, private := recipient(t, env)
	if err := Publish(&env.Env, PublishRequest{}); err != nil {
		t.Fatal(err)
	}
	if err := Rotate(&env.Env, RotateRequest{Agent: "desk", After: time.Hour, Overlap: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if err := Publish(&env.Env, PublishRequest{}); err != nil {
		t.Fatal(err)
	}
	want := keys(t, env, "desk")
	file := filepath.Join(t.TempDir(), "desk.age")
	if err := Export(&env.Env, ExportRequest{Agent: "desk", Recipients: []string{public}, Out: file}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	env.Vars["XDG_STATE_HOME"] = t.TempDir() // another host
	if got := keys(t, env, "desk"); len(got) != 0 {
		t.Fatalf("keys before: %+v", got)
	}
	if err := Import(&env.Env, ImportRequest{File: file, Identities: []string{private}}); err != nil {
		t.Fatal(err)
	}
	got := keys(t, env, "desk")
	if len(got) != len(want) {
		t.Fatalf("%+v, want %+v", got, want)
	}
	for i := range got {
		if info, err := os.Stat(got[i].File); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
		got[i].File = want[i].File
		if got[i] != want[i] || !got[i].Published {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
	// Once more is no harm.
	if err := Import(&env.Env, ImportRequest{File: file, Identities: []string{private}, Agent: "agent://desk"}); err != nil {
		t.Error(err)
	}
}

// Anybody can seal keys for an agent; those that the fleet does not publish are refused,
// also beside one that it does.
func TestImportOfForeignKeys(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	public, private := recipient(t, env)
	to, err := sealed.ParseRecipients(public)
	if err != nil {
		t.Fatal(err)
	}
	if err := Publish(&env.Env, PublishRequest{}); err != nil {
		t.Fatal(err)
	}
	_, stores, err := findStores(&env.Env, Selection{Agents: []string{"desk"}})
	if err != nil {
		t.Fatal(err)
	}
	mine, err := stores[0].Keys()
	if err != nil {
		t.Fatal(err)
	}
	other := identity.Store{Path: filepath.Join(t.TempDir(), "identity.json")}
	foreign, err := other.Ensure(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	expired := foreign[0]
	expired.Window.NotAfter = time.Now().Add(-time.Hour)
	for name, test := range map[string]struct {
		keys sealed.Keys
		want string
		told bool // --allow-unpublished makes a difference
	}{
		"another agent's":   {sealed.Keys{Agent: "agent://stranger", Own: mine}, "the fleet has no such agent", false},
		"unknown":           {sealed.Keys{Agent: "agent://desk", Own: foreign}, "identities.yaml does not list these keys for agent://desk: " + foreign[0].Public, true},
		"one more":          {sealed.Keys{Agent: "agent://desk", Own: append(foreign, mine...)}, "does not list these keys for agent://desk: " + foreign[0].Public, true},
		"for another agent": {sealed.Keys{Agent: "agent://clerk", Own: mine}, "does not list these keys for agent://clerk", true},
		"only expired":      {sealed.Keys{Agent: "agent://desk", Own: []identity.OwnKey{expired}}, "has expired", true},
		"none":              {sealed.Keys{Agent: "agent://desk"}, "has expired, or there is none", true},
	} {
		data, err := sealed.Seal(test.keys, to...)
		if err != nil {
			t.Fatal(err)
		}
		r := ImportRequest{File: filepath.Join(t.TempDir(), "file.age"), Identities: []string{private}, Force: true}
		if err := os.WriteFile(r.File, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Import(&env.Env, r); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
		if got, err := stores[0].Keys(); err != nil || len(got) != 1 || got[0] != mine[0] {
			t.Errorf("%s: the keys are now %v, %v", name, got, err)
		}
		env.Vars["XDG_STATE_HOME"] = t.TempDir()
		r.Unpublished = true
		if err := Import(&env.Env, r); (err == nil) != test.told {
			t.Errorf("%s, told: %v", name, err)
		}
		env.Vars["XDG_STATE_HOME"] = filepath.Join(env.Dir, "state")
	}
}

// A host that lacks a published key withdraws it only when told; one that runs only
// some of the fleet's agents publishes those.
func TestPublishKeepsTheKeysOfOtherReplicas(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	if err := Publish(&env.Env, PublishRequest{}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(env.Dir, fleet.IdentitiesName)
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	env.Vars["XDG_STATE_HOME"] = t.TempDir()
	desk := PublishRequest{Selection: Selection{Agents: []string{"desk"}}}
	if err := Publish(&env.Env, desk); err == nil || !strings.Contains(err.Error(), "other replicas use it") {
		t.Errorf("the key of another host: %v", err)
	}
	if err := Publish(&env.Env, PublishRequest{}); err == nil || !strings.Contains(err.Error(), "none of these agents has its key here") {
		t.Errorf("nothing to publish: %v", err)
	}
	if now, err := os.ReadFile(file); err != nil || string(now) != string(before) {
		t.Errorf("the file is now %s, %v", now, err)
	}
	if got := keys(t, env); len(got) != 0 {
		t.Errorf("keys were made: %+v", got)
	}
	desk.Replace = true
	if err := Publish(&env.Env, desk); err != nil {
		t.Fatal(err)
	}
	if got := keys(t, env, "desk"); len(got) != 1 || !got[0].Published || strings.Contains(string(before), got[0].PublicKey) {
		t.Errorf("%+v", got)
	}
	if err := Publish(&env.Env, PublishRequest{}); err != nil { // clerk is left out
		t.Error(err)
	}
}

// A passphrase is asked for twice before it seals anything, and an empty one is none.
func TestPassphraseIsAskedFor(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	if err := Publish(&env.Env, PublishRequest{}); err != nil {
		t.Fatal(err)
	}
	empty := env.Write(t, "empty", "\nnot in the first line\n")
	answers := func(all ...string) func(string) ([]byte, error) {
		return func(string) ([]byte, error) {
			if len(all) == 0 {
				return nil, errors.New("asked too often")
			}
			next := all[0]
			all = all[1:]
			return []byte(next), nil
		}
	}
	for want, p := range map[string]Passphrase{
		"the two passphrases differ": {Ask: answers("one", "two")},
		"the passphrase is empty":    {Ask: answers("", "")},
		"asked too often":            {Ask: answers("one")},
	} {
		if err := Export(&env.Env, ExportRequest{Agent: "desk", ByPassphrase: true, Passphrase: p}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := Export(&env.Env, ExportRequest{Agent: "desk", Passphrase: Passphrase{File: empty}}); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("from a file: %v", err)
	}
	if err := Import(&env.Env, ImportRequest{File: empty, Passphrase: Passphrase{Ask: answers("one")}}); err == nil {
		t.Error("opened a file that is not sealed")
	}
	if err := Export(&env.Env, ExportRequest{Agent: "desk"}); clitest.Code(err) != cli.ExitUsage {
		t.Errorf("to nobody: %v", err)
	}
}
