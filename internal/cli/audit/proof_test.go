package audit

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/clitest"
	"github.com/agentd/agentd/internal/output"
)

// A proof convinces with the log's key, in another folder, without the log.
func TestProveAndVerify(t *testing.T) {
	t.Parallel()
	env := newOffice(t, map[string][]auditchain.Record{"desk": calls(3, "s-1"), "clerk": calls(1, "s")})
	file := filepath.Join(t.TempDir(), "proof.json")
	if err := Prove(t.Context(), &env.Env, ProveRequest{Logs: Choice{Agent: "desk"}, Seq: "2", Out: file}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(env.Err.String(), "record 2 is proven in "+file) {
		t.Errorf("%s", env.Err)
	}
	key := dbOf(t, env, "desk") + ".pub"
	elsewhere := clitest.New(t, "")
	if err := VerifyProof(&elsewhere.Env, file, []string{key}); err != nil {
		t.Fatalf("%v: %s", err, elsewhere.Out)
	}
	for _, want := range []string{"✓ " + file + ": record 2 of ", "one of 3 under the checkpoint", "session     s-1", `body        {"status":"ok"}`} {
		if !strings.Contains(elsewhere.Out.String(), want) {
			t.Errorf("no %q in %s", want, elsewhere.Out)
		}
	}

	// The file stays: a second proof does not replace it.
	if err := Prove(t.Context(), &env.Env, ProveRequest{Logs: Choice{Agent: "desk"}, Seq: "3", Out: file}); err == nil || !strings.Contains(err.Error(), "file exists") {
		t.Errorf("%v", err)
	}

	// Another log's key, or a changed proof, does not convince; and nothing of
	// what a false proof claims is shown.
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ text, key string }{
		"another key": {string(text), dbOf(t, env, "clerk") + ".pub"},
		"changed":     {strings.Replace(string(text), `"s-1"`, `"s-9"`, 1), key},
		"truncated":   {string(text[:len(text)/2]), key},
		"empty":       {"", key},
	} {
		elsewhere.Reset()
		elsewhere.Format = output.JSON
		elsewhere.Stdin = strings.NewReader(test.text)
		err := VerifyProof(&elsewhere.Env, "-", []string{test.key})
		var got map[string]any
		if jerr := json.Unmarshal([]byte(elsewhere.Out.String()), &got); jerr != nil {
			t.Fatalf("%s: %v in %s", name, jerr, elsewhere.Out)
		}
		if clitest.Code(err) != cli.ExitFinding || got["ok"] != false || got["error"] == "" || got["origin"] != nil || got["content"] != nil {
			t.Errorf("%s: %v, %s", name, err, elsewhere.Out)
		}
	}
}

func TestProveWithoutContent(t *testing.T) {
	t.Parallel()
	env := newOffice(t, map[string][]auditchain.Record{"desk": calls(1, "s-secret")})
	if err := Prove(t.Context(), &env.Env, ProveRequest{Seq: "1", WithoutContent: true}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(env.Out.String(), "s-secret") {
		t.Errorf("the proof shows the content: %s", env.Out)
	}
	env.Stdin = strings.NewReader(env.Out.String())
	env.Reset()
	err := VerifyProof(&env.Env, "-", []string{dbOf(t, env, "desk") + ".pub"})
	if err != nil || !strings.Contains(env.Out.String(), "not shown: left out, or erased from the log") {
		t.Errorf("%v: %s", err, env.Out)
	}
}

func TestProveErrors(t *testing.T) {
	t.Parallel()
	env := newOffice(t, map[string][]auditchain.Record{"desk": calls(1, "s")})
	for _, seq := range []string{"", "0", "-1", "1.5", "one", "99999999999999999999"} {
		if err := Prove(t.Context(), &env.Env, ProveRequest{Seq: seq}); clitest.Code(err) != cli.ExitUsage || !strings.Contains(err.Error(), "is no record number") {
			t.Errorf("%q: %v", seq, err)
		}
	}
	if err := Prove(t.Context(), &env.Env, ProveRequest{Seq: "2"}); clitest.Code(err) != cli.ExitFailed {
		t.Errorf("a record that is not there: %v", err)
	}
}

func TestReadKeys(t *testing.T) {
	t.Parallel()
	env := newOffice(t, map[string][]auditchain.Record{"desk": calls(1, "s")})
	file := dbOf(t, env, "desk") + ".pub"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	key := strings.TrimSpace(string(text))
	got, err := readKeys("--key", []string{file, key})
	if err != nil || len(got) != 2 || got[0] != key || got[1] != key {
		t.Errorf("%q, %v; want the key from the file, and as it is", got, err)
	}
	if _, err := readKeys("--key", []string{"nonsense"}); clitest.Code(err) != cli.ExitUsage || !strings.Contains(err.Error(), "neither a verifier key") {
		t.Errorf("%v", err)
	}
	for name, content := range map[string]string{"empty": "", "prose": "this is no key\n", "large": strings.Repeat("x", maxKeyFileBytes+1)} {
		if _, err := readKeys("--key", []string{env.Write(t, name, content)}); clitest.Code(err) != cli.ExitFailed || !strings.Contains(err.Error(), "--key: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// After a rotation, the printed key is the one that signs, and trusting the old
// one is enough to verify what the new one has signed.
func TestRotateKey(t *testing.T) {
	t.Parallel()
	env := newOffice(t, map[string][]auditchain.Record{"desk": calls(2, "s")})
	db := dbOf(t, env, "desk")
	old, err := os.ReadFile(db + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	if err := RotateKey(t.Context(), &env.Env, Choice{}); err != nil {
		t.Fatal(err)
	}
	if fresh := strings.TrimSpace(env.Out.String()); fresh == strings.TrimSpace(string(old)) || !strings.Contains(fresh, "+") {
		t.Errorf("the new key is %q, the old one %q", fresh, old)
	}
	appendTo(t, db, calls(1, "s")...)
	env.Reset()
	if err := Verify(t.Context(), &env.Env, VerifyRequest{Keys: []string{strings.TrimSpace(string(old))}}); err != nil {
		t.Errorf("%v: %s", err, env.Out)
	}
	missing := filepath.Join(t.TempDir(), "no.db")
	if err := RotateKey(t.Context(), &env.Env, Choice{DB: missing}); err == nil {
		t.Error("rotated the key of a log that does not exist")
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("and created it")
	}
}
