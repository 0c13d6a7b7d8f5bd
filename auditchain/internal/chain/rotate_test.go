package chain_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/internal/sidecar"
	"github.com/agentd/agentd/auditchain/internal/verify"
)

func TestRotateKey(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{})
	audittest.Append(t, l, audittest.Violation(1))
	first := audittest.PublicKeys(t, l.Reader)[0]
	second, err := l.RotateKey(context.Background())
	if err != nil || second == first {
		t.Fatalf("%q, %v", second, err)
	}
	audittest.Append(t, l, audittest.Violation(2))
	audittest.Close(t, l)

	for _, suffix := range []string{sidecar.KeySuffix, sidecar.NextKeySuffix} {
		text, err := os.ReadFile(l.Path() + suffix)
		if suffix == sidecar.NextKeySuffix != errors.Is(err, os.ErrNotExist) || bytes.Contains(text, []byte(strings.Split(first, "+")[1])) {
			t.Errorf("%s: %v", suffix, err)
		}
	}
	// Who trusts the first key is led to the second, not the other way round.
	audittest.WantIntact(t, audittest.VerifyPath(t, l.Path(), auditchain.VerifyOptions{TrustedKeys: []string{first}}), 3)
	report := audittest.VerifyPath(t, l.Path(), auditchain.VerifyOptions{TrustedKeys: []string{second}})
	if report.OK() || report.Faults[0].Class != verify.KeyUntrusted {
		t.Errorf("with the second key only: %+v", report)
	}
	l = audittest.OpenAt(t, l.Path(), auditchain.Options{})
	if r := l.Recovery(); r.KeyChanged || r.Unsigned != 0 {
		t.Errorf("recovery: %+v", r)
	}
}

func TestInterruptedRotation(t *testing.T) {
	t.Parallel()
	for name, crash := range map[string]func(t *testing.T, path string, old []byte){
		"before the record": func(t *testing.T, path string, old []byte) {
			key, _ := checkpoint.GenerateKey("next")
			if err := sidecar.WriteKey(path, sidecar.NextKeySuffix, key); err != nil {
				t.Fatal(err)
			}
		},
		"after the record": func(t *testing.T, path string, old []byte) {
			l := audittest.OpenAt(t, path, auditchain.Options{})
			if _, err := l.RotateKey(context.Background()); err != nil {
				t.Fatal(err)
			}
			audittest.Close(t, l)
			os.Rename(path+sidecar.KeySuffix, path+sidecar.NextKeySuffix)
			os.WriteFile(path+sidecar.KeySuffix, old, 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.db")
			audittest.Close(t, audittest.OpenAt(t, path, auditchain.Options{}))
			old, _ := os.ReadFile(path + sidecar.KeySuffix)
			crash(t, path, old)
			l := audittest.OpenAt(t, path, auditchain.Options{})
			if changed := name == "after the record"; l.Recovery().KeyChanged != changed {
				t.Errorf("recovery: %+v", l.Recovery())
			}
			audittest.Append(t, l, audittest.Violation(1))
			audittest.Close(t, l)
			if _, err := os.Stat(path + sidecar.NextKeySuffix); !errors.Is(err, os.ErrNotExist) {
				t.Error("the file of the next key is still there")
			}
			if report := audittest.VerifyPath(t, path, auditchain.VerifyOptions{}); !report.OK() || report.Unsigned() != 0 {
				t.Errorf("%+v", report)
			}
		})
	}
}

func TestLostKeyIsReplacedOnRequest(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{})
	audittest.Append(t, l, audittest.Violation(1))
	first := audittest.PublicKeys(t, l.Reader)[0]
	audittest.Close(t, l)
	os.Remove(l.Path() + sidecar.KeySuffix)
	_, err := auditchain.Open(context.Background(), l.Path(), auditchain.Options{})
	audittest.WantCode(t, err, auditchain.CodeKeyMissing)

	l = audittest.OpenAt(t, l.Path(), auditchain.Options{ReplaceLostKey: true})
	if !l.Recovery().KeyChanged {
		t.Errorf("recovery: %+v", l.Recovery())
	}
	audittest.Append(t, l, audittest.Violation(2))
	audittest.Close(t, l)
	audittest.WantIntact(t, audittest.VerifyPath(t, l.Path(), auditchain.VerifyOptions{}), 3)
	// Nothing but an auditor's decision makes the new key trusted.
	report := audittest.VerifyPath(t, l.Path(), auditchain.VerifyOptions{TrustedKeys: []string{first}})
	if report.OK() || report.Faults[0].Class != verify.KeyUntrusted {
		t.Errorf("with the first key only: %+v", report)
	}
	keys, _ := sidecar.ReadPublicKeys(l.Path())
	audittest.WantIntact(t, audittest.VerifyPath(t, l.Path(), auditchain.VerifyOptions{TrustedKeys: keys}), 3)
	audittest.OpenAt(t, l.Path(), auditchain.Options{})
}

// An old copy of the database, from before a change of keys, is called that, though it
// does not know the key of the checkpoint beside it.
func TestOldCopyFromBeforeARotation(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{})
	audittest.Append(t, l, audittest.Violation(1))
	old := audittest.SceneAt(t, audittest.CopyLog(t, l.Path()))
	if _, err := l.RotateKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	audittest.Append(t, l, audittest.Violation(2))
	audittest.Close(t, l)
	for _, suffix := range []string{sidecar.CheckpointSuffix, sidecar.PublicSuffix, sidecar.KeySuffix} {
		old.Write(suffix, audittest.SceneAt(t, l.Path()).Read(suffix))
	}
	_, err := auditchain.Open(t.Context(), old.Path, auditchain.Options{})
	audittest.WantCode(t, err, auditchain.CodeRollback)
}
