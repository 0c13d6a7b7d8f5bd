package identity

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/clitest"
	"github.com/agentd/agentd/internal/output"
)

// keys lists the keys of the named agents.
func keys(t *testing.T, env *clitest.Env, agents ...string) []key {
	t.Helper()
	env.Reset()
	env.Format = output.JSON
	if err := List(&env.Env, Selection{Agents: agents}); err != nil {
		t.Fatal(err)
	}
	var all []key
	if err := json.Unmarshal([]byte(env.Out.String()), &all); err != nil || all == nil {
		t.Fatalf("%v in %s", err, env.Out)
	}
	return all
}

// Publishing makes a key for each agent that has none, and changes nothing when
// it is done again.
func TestPublish(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	if got := keys(t, env); len(got) != 0 {
		t.Errorf("keys before any was made: %+v", got)
	}
	env.Reset()
	if err := Publish(&env.Env, PublishRequest{Selection: Selection{Agents: []string{"clerk"}}}); err != nil || env.Out.String() != "identities.yaml lists 1 agents\n" {
		t.Errorf("%v: %s", err, env.Out)
	}
	env.Reset()
	if err := Publish(&env.Env, PublishRequest{}); err != nil || env.Out.String() != "identities.yaml lists 2 agents\n" {
		t.Errorf("%v: %s", err, env.Out)
	}
	file := filepath.Join(env.Dir, fleet.IdentitiesName)
	first, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := Publish(&env.Env, PublishRequest{}); err != nil {
		t.Fatal(err)
	}
	if second, err := os.ReadFile(file); err != nil || string(first) != string(second) {
		t.Errorf("first %s\nthen %s, %v", first, second, err)
	}
	got := keys(t, env)
	if len(got) != 2 || got[0].Agent != "clerk" || !got[0].Published || got[0].State != stateActive || !strings.Contains(string(first), got[0].PublicKey) {
		t.Errorf("%+v", got)
	}
	for _, k := range got { // the secret half stays where it is
		secret, err := os.ReadFile(k.File)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(k.File); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", k.File, info.Mode(), err)
		}
		var stored struct{ Keys []struct{ Seed string } }
		if err := json.Unmarshal(secret, &stored); err == nil && len(stored.Keys) > 0 && stored.Keys[0].Seed != "" && strings.Contains(env.Out.String(), stored.Keys[0].Seed) {
			t.Error("the list shows a secret")
		}
	}
}

// A rotation keeps the old key until the new one has taken over.
func TestRotate(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	if err := Publish(&env.Env, PublishRequest{}); err != nil {
		t.Fatal(err)
	}
	env.Reset()
	if err := Rotate(&env.Env, RotateRequest{Agent: "desk", After: time.Hour, Overlap: time.Hour}); err != nil {
		t.Fatal(err)
	}
	got := keys(t, env, "desk")
	if len(got) != 2 || got[0].State != stateRetiring || !got[0].Published || got[1].State != stateNext || got[1].Published {
		t.Errorf("%+v", got)
	}
	if d := got[0].NotAfter.Sub(got[1].NotBefore); d != time.Hour {
		t.Errorf("the keys overlap by %s, want an hour", d)
	}
	if err := Publish(&env.Env, PublishRequest{Selection: Selection{Agents: []string{"desk"}}}); err != nil {
		t.Fatal(err)
	}
	for _, k := range keys(t, env, "desk") {
		if !k.Published {
			t.Errorf("%s is not published", k.State)
		}
	}
	env.Reset()
	env.Format = output.Table
	if err := List(&env.Env, Selection{}); err != nil || !strings.HasPrefix(env.Out.String(), "AGENT  STATE     PUBLISHED  SINCE") || strings.Count(env.Out.String(), "\n") != 4 {
		t.Errorf("%v: %s", err, env.Out)
	}
}

func TestRequestErrors(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	for want, err := range map[string]error{
		"--agent is required":                   Rotate(&env.Env, RotateRequest{}),
		"must not be negative":                  Rotate(&env.Env, RotateRequest{Agent: "desk", After: -1}),
		"--overlap must not be negative":        Rotate(&env.Env, RotateRequest{Agent: "desk", Overlap: -1}),
		`--agent: the fleet has no agent "who"`: Rotate(&env.Env, RotateRequest{Agent: "who"}),
		`has no agent "who"`:                    List(&env.Env, Selection{Agents: []string{"desk", "who"}}),
		`no agent "who"`:                        Publish(&env.Env, PublishRequest{Selection: Selection{Agents: []string{"who"}}}),
	} {
		if clitest.Code(err) != cli.ExitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(env.Dir, fleet.IdentitiesName)); err == nil {
		t.Error("a refused command wrote identities.yaml")
	}
}

// An agent with a shared secret does not lose it to its key pair.
func TestPublishKeepsOtherProviders(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	text := "version: 1\nidentities:\n  - agent: agent://desk\n    auth: {provider: hmac, keyId: k, secretRef: \"env:SHARED\"}\n"
	file := env.Write(t, fleet.IdentitiesName, text)
	err := Publish(&env.Env, PublishRequest{Selection: Selection{Agents: []string{"desk"}}})
	if err == nil || !strings.Contains(err.Error(), "identities.yaml:4: agent://desk proves its identity by hmac; remove the entry first") {
		t.Errorf("%v", err)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != text {
		t.Errorf("the file is now %s, %v", got, err)
	}
	if err := Publish(&env.Env, PublishRequest{Selection: Selection{Agents: []string{"clerk"}}}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file); err != nil || !strings.Contains(string(got), "hmac") || !strings.Contains(string(got), "agent://clerk") {
		t.Errorf("the file is now %s, %v", got, err)
	}
}

func TestState(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	before, after := now.Add(-time.Minute), now.Add(time.Minute)
	for _, test := range []struct {
		window identity.Window
		want   string
	}{
		{identity.Window{}, stateActive},
		{identity.Window{NotBefore: before}, stateActive},
		{identity.Window{NotBefore: now}, stateActive},
		{identity.Window{NotBefore: after}, stateNext},
		{identity.Window{NotAfter: after}, stateRetiring},
		{identity.Window{NotAfter: now}, stateRetiring},
		{identity.Window{NotBefore: before, NotAfter: before}, stateExpired},
	} {
		if got := state(test.window, now); got != test.want {
			t.Errorf("%+v: %s, want %s", test.window, got, test.want)
		}
	}
}

// A key whose time is over is listed, and published no more; the machine's other
// members and the agents of other machines keep their entries.
func TestExpiredKeysAreNotPublished(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, clitest.Office)
	if err := Publish(&env.Env, PublishRequest{}); err != nil {
		t.Fatal(err)
	}
	if err := Rotate(&env.Env, RotateRequest{Agent: "desk"}); err != nil { // at once, without overlap
		t.Fatal(err)
	}
	if err := Publish(&env.Env, PublishRequest{Selection: Selection{Agents: []string{"desk"}}}); err != nil {
		t.Fatal(err)
	}
	for _, k := range keys(t, env) {
		old := k.State == stateExpired
		if k.Published == old || old && (k.Agent != "desk" || k.NotAfter.IsZero()) {
			t.Errorf("%+v", k)
		}
	}
	if got := keys(t, env, "desk"); len(got) != 2 || got[0].State != stateExpired || got[1].State != stateActive {
		t.Errorf("%+v", got)
	}
	env.Reset()
	env.Format = output.Table
	if err := List(&env.Env, Selection{Agents: []string{"desk"}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"desk   expired  false", "desk   active   true", "UNTIL", "PUBLIC KEY"} {
		if !strings.Contains(env.Out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, env.Out)
		}
	}
}
