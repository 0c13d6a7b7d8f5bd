package verify_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/internal/verify"
)

// stop verifies a scene until a number of checkpoints have been read, and returns the state
// as a file would keep it, nil for none.
func stop(t *testing.T, s *audittest.Scene, checkpoints int) *verify.State {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	db := openThrough(t, s.Path, func(query string) string {
		if strings.HasPrefix(query, "SELECT size, note") {
			if checkpoints--; checkpoints == 0 {
				cancel()
			}
		}
		return query
	})
	var state *verify.State
	_, err := verify.Run(ctx, db, verify.Options{TrustedKeys: s.Keys, Tenant: "acme", Stopped: func(s *verify.State) { state = s }})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if state == nil {
		return nil
	}
	text, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	kept := &verify.State{}
	if err := json.Unmarshal(text, kept); err != nil {
		t.Fatal(err)
	}
	return kept
}

// What was stopped and continued says what a whole verification says.
func TestContinue(t *testing.T) {
	t.Parallel()
	scene := audittest.NewScene(t)
	options := auditchain.VerifyOptions{TrustedKeys: scene.Keys, Tenant: "acme"}
	whole := audittest.VerifyPath(t, scene.Path, options)
	sizes := map[int64]bool{}
	for checkpoints := 3; checkpoints < 9; checkpoints++ {
		state := stop(t, scene, checkpoints)
		if state == nil {
			t.Fatalf("no state after %d checkpoints", checkpoints)
		}
		sizes[state.Size] = true
		options.Continue = state
		got := audittest.VerifyPath(t, scene.Path, options)
		if !got.OK() || got.Continued != state.Size || got.Records != whole.Records || got.Pruned != whole.Pruned || got.Erased != whole.Erased ||
			got.Tenant != whole.Tenant || got.Signed != whole.Signed || len(got.Keys) != len(whole.Keys) {
			t.Errorf("continued after %d: %+v, whole: %+v", state.Size, got, whole)
		}
	}
	if len(sizes) < 6 {
		t.Errorf("stopped at %v only", sizes)
	}
}

// A log that is another one since the stop is found out.
func TestContinueFindsWhatHasChanged(t *testing.T) {
	t.Parallel()
	scene := audittest.NewScene(t)
	state := stop(t, scene, 7)
	if state == nil || state.Size != 303 {
		t.Fatalf("stopped at %+v: the test shows something else", state)
	}
	for name, test := range map[string]struct{ sql string }{
		"another history":           {`UPDATE tree SET hash = zeroblob(32) WHERE level = 8 AND position = 0`},
		"cut before the stop":       {`DELETE FROM records WHERE seq > 290; DELETE FROM checkpoints WHERE size > 290`},
		"the last one read":         {`UPDATE records SET hash = zeroblob(32) WHERE seq = (SELECT max(size) FROM checkpoints WHERE size <= 304)`},
		"every text before":         {`UPDATE records SET body = '{}' WHERE seq BETWEEN 30 AND 290 AND kind <> 'checkpoint'`},
		"a record after the stop":   {`UPDATE records SET body = '{}' WHERE seq = 550`},
		"the last one of the log":   {`DELETE FROM records WHERE seq = 600`},
		"one that is gone since":    {`DELETE FROM records WHERE seq = 540`},
		"a checkpoint after a stop": {`UPDATE checkpoints SET note = replace(note, 'agentd', 'agentx') WHERE size = 600`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := scene.Copy(t)
			c.SQL(test.sql)
			report := audittest.VerifyPath(t, c.Path, auditchain.VerifyOptions{TrustedKeys: scene.Keys, Tenant: "acme", Continue: state})
			if report.OK() {
				t.Errorf("%+v", report)
			}
		})
	}
	// Of another log, or begun with other keys, it is no start.
	r := audittest.OpenReader(t, scene.Path)
	_, err := r.Verify(t.Context(), auditchain.VerifyOptions{Tenant: "acme", Continue: state})
	audittest.WantCode(t, err, auditchain.CodeInvalid)
	// Nor is it for the count of another tenant's records.
	for _, tenant := range []string{"", "other"} {
		_, err := r.Verify(t.Context(), auditchain.VerifyOptions{TrustedKeys: scene.Keys, Tenant: tenant, Continue: state})
		audittest.WantCode(t, err, auditchain.CodeInvalid)
		if !strings.Contains(err.Error(), `tenant "acme"`) {
			t.Error(err)
		}
	}
	other := audittest.OpenReader(t, audittest.NewScene(t).Path)
	_, err = other.Verify(t.Context(), auditchain.VerifyOptions{TrustedKeys: scene.Keys, Tenant: "acme", Continue: state})
	audittest.WantCode(t, err, auditchain.CodeInvalid)
}

// A run that has met a fault is not continued: it would be forgotten.
func TestNoStateAfterAFault(t *testing.T) {
	t.Parallel()
	scene := audittest.NewScene(t)
	scene.SQL(`UPDATE records SET body = '{}' WHERE seq = 50`)
	if state := stop(t, scene, 4); state != nil {
		t.Errorf("%+v", state)
	}
}
