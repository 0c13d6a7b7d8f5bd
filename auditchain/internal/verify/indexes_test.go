package verify_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/internal/store"
	"github.com/agentd/agentd/auditchain/internal/verify"
)

func sumsAgree(t *testing.T, path string) bool {
	t.Helper()
	r, err := store.OpenReader(t.Context(), path, store.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	agree, err := verify.SumsAgree(t.Context(), &r.DB)
	if err != nil {
		t.Fatal(err)
	}
	return agree
}

// The indexes of a sound log, with pruned, erased and tenants' records, are found sound
// by their sums alone.
func TestSumsOfSoundIndexesAgree(t *testing.T) {
	t.Parallel()
	s := audittest.NewScene(t)
	if !sumsAgree(t, s.Path) {
		t.Error("the sums over the indexes are not those over the records")
	}
}

// Whatever an index lists instead of what its definition says is found. Each of these
// keeps the definition's text.
func TestAlteredIndexesAreFound(t *testing.T) {
	t.Parallel()
	original := audittest.NewScene(t)
	for name, on := range map[string]string{
		"another value":                   `(CASE seq WHEN 50 THEN 'prune' ELSE kind END)`,
		"the values of two records":       `(CASE seq WHEN 50 THEN 'prune' WHEN 302 THEN 'schema_violation' ELSE kind END)`,
		"values of another type":          `(CAST(kind AS BLOB))`,
		"one value of another type":       `(CASE seq WHEN 50 THEN CAST(kind AS BLOB) ELSE kind END)`,
		"values in the opposite order":    `(kind DESC)`,
		"another column":                  `(tenant)`,
		"values of another case":          `(upper(kind))`,
		"nothing of one record":           `(kind) WHERE seq <> 50`,
		"nothing but of the log's own":    `(kind) WHERE kind IN ('prune', 'checkpoint')`,
		"nothing":                         `(kind) WHERE seq < 0`,
		"a null in the place of one kind": `(CASE seq WHEN 50 THEN NULL ELSE kind END)`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := original.Copy(t)
			s.SQL(`DROP INDEX records_kind; CREATE INDEX records_kind ON records` + on)
			s.SQL(`PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'CREATE INDEX records_kind ON records(kind)' WHERE name = 'records_kind'; PRAGMA writable_schema = OFF`)
			if sumsAgree(t, s.Path) {
				t.Error("its sum is that of the records")
			}
			// Verification itself looks records up by their kind, and may miss some.
			report := audittest.VerifyPath(t, s.Path, auditchain.VerifyOptions{TrustedKeys: s.Keys})
			if !slices.ContainsFunc(report.Faults, func(f auditchain.Fault) bool { return f.Class == verify.IndexAltered }) {
				t.Errorf("the faults are %v", report.Faults)
			}
		})
	}
}

// SQLite may find records by an index that somebody has added, so that one counts too.
func TestAddedIndexes(t *testing.T) {
	t.Parallel()
	s := audittest.NewScene(t)
	s.SQL(`CREATE INDEX mine ON records(ts)`)
	audittest.WantIntact(t, audittest.VerifyPath(t, s.Path, auditchain.VerifyOptions{TrustedKeys: s.Keys}), audittest.SceneRecords-5)
	s.SQL(`CREATE INDEX theirs ON records(kind, seq) WHERE seq <> 50`)
	s.SQL(`PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'CREATE INDEX theirs ON records(kind, seq)' WHERE name = 'theirs'; PRAGMA writable_schema = OFF`)
	audittest.WantFault(t, audittest.VerifyPath(t, s.Path, auditchain.VerifyOptions{TrustedKeys: s.Keys}), verify.IndexAltered, 0)
}

// A log that is appended to all the while is verified by the sums as well: SQLite's own
// comparison, which takes longer, is for what differs.
func TestSumsAgreeWhileTheLogIsWritten(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{})
	audittest.Fill(t, l, 30)
	calls(t, l, 100, 20)
	compared := false
	report, err := changing(t, l, verify.Options{}, func(n int, query string) {
		compared = compared || strings.Contains(query, "integrity_check") || strings.Contains(query, "UNION ALL SELECT pack, 0, 1 FROM terms")
		audittest.Append(t, l, audittest.Violation(1000+n))
		calls(t, l, 2000+100*n, 20)
	})
	if err != nil || !report.OK() {
		t.Fatalf("%+v, %v", report, err)
	}
	if compared {
		t.Error("SQLite compared the indexes once more")
	}
}

// An entry of a record that is not there is found, also if its number is beyond the end.
func TestEntryBeyondTheEnd(t *testing.T) {
	t.Parallel()
	s := audittest.NewScene(t)
	const record = `ts, tenant, kind, peer, capability, side, correlation, session, body, salt, digest, hash, NULL FROM records WHERE seq = 50`
	s.SQL(`INSERT INTO records SELECT 9000, ` + record + `;
		PRAGMA writable_schema = ON;
		CREATE TEMP TABLE hidden AS SELECT * FROM sqlite_schema WHERE name = 'records_kind';
		DELETE FROM sqlite_schema WHERE name = 'records_kind';
		PRAGMA writable_schema = RESET;
		DELETE FROM records WHERE seq = 9000; -- of which the index keeps its entry
		PRAGMA writable_schema = ON;
		INSERT INTO sqlite_schema SELECT * FROM hidden;
		PRAGMA writable_schema = RESET`)
	audittest.WantFault(t, audittest.VerifyPath(t, s.Path, auditchain.VerifyOptions{TrustedKeys: s.Keys}), verify.IndexAltered, 0)
}

// A log that is appended to, redacted and pruned while it is verified is intact, whatever
// the sums over its indexes are.
func TestChangesDuringAVerificationAreNoFault(t *testing.T) {
	t.Parallel()
	l := audittest.Open(t, auditchain.Options{})
	audittest.Fill(t, l, verify.PageSize+1)
	changed := false
	report := audittest.Verify(t, l.Reader, auditchain.VerifyOptions{Progress: func(seq, _ int64) {
		if changed {
			return
		}
		changed = true
		audittest.Append(t, l, audittest.Violation(1))
		if _, err := l.Redact(t.Context(), auditchain.Filter{Correlation: audittest.Correlation(7)}, "asked for"); err != nil {
			t.Error(err)
		}
		if _, err := l.Prune(t.Context(), time.Now().Add(time.Hour), "age"); err != nil {
			t.Error(err)
		}
	}})
	if !report.OK() || !changed {
		t.Errorf("changed %v, faults %v", changed, report.Faults)
	}
}
