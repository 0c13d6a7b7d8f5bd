package chain_test

import (
	"context"
	"crypto/sha256"
	"os"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/internal/chain"
	"github.com/agentd/agentd/auditchain/internal/sidecar"
	"github.com/agentd/agentd/auditchain/internal/store"
)

func TestWriterRefusesADamagedLog(t *testing.T) {
	t.Parallel()
	original := audittest.NewScene(t)
	for _, test := range []struct {
		name   string
		damage func(s *audittest.Scene)
		code   auditchain.Code
	}{
		{"old copy of the database", func(s *audittest.Scene) {
			s.SQL(`DELETE FROM records WHERE seq > 500; DELETE FROM checkpoints WHERE size > 500`)
		}, auditchain.CodeRollback},
		{"database removed", func(s *audittest.Scene) { os.Remove(s.Path) }, auditchain.CodeRollback},
		{"newest record changed", func(s *audittest.Scene) { s.Rewrite(600); s.Rehash(600, 0) }, auditchain.CodeTampered},
		{"forged unsigned record", func(s *audittest.Scene) {
			s.SQL(`INSERT INTO records SELECT 601, ts, tenant, kind, peer, capability, side, correlation, session, body, salt, digest, hash, NULL FROM records WHERE seq = 600`)
		}, auditchain.CodeTampered},
		{"trigger", func(s *audittest.Scene) {
			s.SQL(`CREATE TRIGGER quiet BEFORE INSERT ON records BEGIN SELECT RAISE(IGNORE); END`)
		}, auditchain.CodeTampered},
		{"key gone", func(s *audittest.Scene) { os.Remove(s.Path + sidecar.KeySuffix) }, auditchain.CodeKeyMissing},
		{"key readable by others", func(s *audittest.Scene) { os.Chmod(s.Path+sidecar.KeySuffix, 0o644) }, auditchain.CodeKeyUnsafe},
		{"key of another log", func(s *audittest.Scene) {
			key, _ := checkpoint.GenerateKey("agentd.audit/other/1")
			s.Write(sidecar.KeySuffix, []byte(key.Secret()))
		}, auditchain.CodeKeyUnsafe},
		{"key that is none", func(s *audittest.Scene) { s.Write(sidecar.KeySuffix, []byte("PRIVATE+KEY+x")) }, auditchain.CodeKeyUnsafe},
		{"checkpoint of another log", func(s *audittest.Scene) {
			key, _ := checkpoint.GenerateKey("agentd.audit/other/1")
			note, _ := checkpoint.Sign(checkpoint.Checkpoint{Origin: key.Name(), Size: 1, Root: sha256.Sum256(nil)}, key.Signer())
			s.Write(sidecar.CheckpointSuffix, note)
		}, auditchain.CodeTampered},
		{"newer schema", func(s *audittest.Scene) { s.SQL(`PRAGMA user_version = 99`) }, auditchain.CodeVersion},
		{"another application's database", func(s *audittest.Scene) { s.SQL(`PRAGMA application_id = 7`) }, auditchain.CodeNotAuditLog},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := original.Copy(t)
			test.damage(s)
			_, _, err := chain.Open(t.Context(), s.Path, options(), store.SQLite)
			audittest.WantCode(t, err, test.code)
			if e := err.(*auditchain.Error); e.Hint == "" || e.Path == "" {
				t.Errorf("the error does not say where or what to do: %v", err)
			}
		})
	}
}

func TestWriteAheadLogLostAfterACrash(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{})
	audittest.Fill(t, l, 3)
	note, err := l.Checkpoint(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	crashed := audittest.CopyLog(t, l.Path()) // as the files are after kill -9
	if err := os.WriteFile(crashed+sidecar.CheckpointSuffix, note, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(crashed + "-wal"); err != nil {
		t.Fatal(err)
	}
	_, err = auditchain.Open(context.Background(), crashed, auditchain.Options{})
	if auditchain.CodeOf(err) != auditchain.CodeRollback {
		t.Fatalf("got %v", err)
	}
}
