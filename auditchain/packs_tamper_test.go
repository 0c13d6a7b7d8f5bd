package auditchain_test

import (
	"context"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/internal/audittest"
	"github.com/agentd/agentd/auditchain/internal/verify"
)

// Whatever is changed in a pack, or in what finds it, verification finds, with the number of a
// record. The packs are of the records 2 to 257, 258 to 301, 352 to 607 and 608 to 651.
func TestTamperingWithPacks(t *testing.T) {
	t.Parallel()
	original := packedLog(t)
	const columns = `ts, tenants, kinds, hashes, salts, bodies FROM packs WHERE first = `
	for name, test := range map[string]struct {
		sql   string
		class auditchain.FaultClass
		seq   int64
	}{
		"a body":                 {`UPDATE packs SET bodies = replace(bodies, '"latencyMs":40.5', '"latencyMs":41.5') WHERE first = 2`, verify.RecordAltered, 40},
		"a column":               {`UPDATE packs SET bodies = replace(bodies, '` + audittest.Correlation(40) + `', '` + audittest.Correlation(41) + `') WHERE first = 2`, verify.RecordAltered, 40},
		"the time":               {`UPDATE packs SET ts = ts + 1 WHERE first = 258`, verify.RecordAltered, 258},
		"the time set back":      {`UPDATE packs SET ts = ts - 3600000 WHERE first = 258`, verify.RecordAltered, 258},
		"the tenants":            {`UPDATE packs SET tenants = '["x"]' WHERE first = 258`, verify.RecordAltered, 258},
		"the kinds":              {`UPDATE packs SET kinds = '["rpc_call"]' WHERE first = 258`, verify.RecordAltered, 258},
		"a kind of the log's":    {`UPDATE packs SET kinds = '["prune"]' WHERE first = 258`, verify.RecordAltered, 258},
		"a salt":                 {`UPDATE packs SET salts = CAST(substr(salts, 1, 16 * 8) || zeroblob(16) || substr(salts, 16 * 9 + 1) AS BLOB) WHERE first = 2`, verify.RecordAltered, 10},
		"a hash":                 {`UPDATE packs SET hashes = CAST(substr(hashes, 1, 32 * 8) || zeroblob(32) || substr(hashes, 32 * 9 + 1) AS BLOB) WHERE first = 2`, verify.RecordAltered, 10},
		"the last hash":          {`UPDATE packs SET hashes = CAST(substr(hashes, 1, length(hashes) - 32) || zeroblob(32) AS BLOB) WHERE first = 608`, verify.RecordAltered, 651},
		"the order":              {`UPDATE packs SET bodies = json_array(json(bodies -> 1), json(bodies -> 0)) || substr(bodies, 0) WHERE first = 258`, verify.RecordAltered, 258},
		"two packs exchanged":    {`UPDATE packs SET first = 9000, last = 9043 WHERE first = 258; UPDATE packs SET first = 258, last = 301 WHERE first = 608; UPDATE packs SET first = 608, last = 651 WHERE first = 9000`, verify.RecordAltered, 258},
		"a record more":          {`UPDATE packs SET last = last + 1 WHERE first = 258`, verify.RecordAltered, 258},
		"a record less":          {`UPDATE packs SET last = last - 1 WHERE first = 258`, verify.RecordAltered, 258},
		"white space":            {`UPDATE packs SET bodies = replace(bodies, '},{', '}, {') WHERE first = 258`, verify.RecordAltered, 258},
		"no array":               {`UPDATE packs SET bodies = '' WHERE first = 258`, verify.RecordAltered, 258},
		"a pack removed":         {`DELETE FROM packs WHERE first = 258`, verify.RecordMissing, 258},
		"all of it removed":      {`DELETE FROM packs WHERE first = 258; DELETE FROM terms WHERE pack = 258; DELETE FROM filters WHERE pack = 258`, verify.RecordMissing, 258},
		"the end removed":        {`DELETE FROM records WHERE seq > 651; DELETE FROM packs WHERE first = 608`, verify.Truncated, 608},
		"packs that overlap":     {`INSERT INTO packs SELECT 230, 273, ` + columns + `258`, verify.RecordAdded, 230},
		"a pack over rows":       {`INSERT INTO packs SELECT 305, 348, ` + columns + `258`, verify.RecordAdded, 305},
		"a row over a pack":      {`INSERT INTO records SELECT 40, ts, tenant, kind, peer, capability, side, correlation, session, body, salt, digest, hash, NULL FROM records WHERE seq = 302`, verify.RecordAdded, 40},
		"numbers below 1":        {`INSERT INTO packs SELECT -50, -7, ` + columns + `258`, verify.RecordAdded, 0},
		"a pack of another end":  {`INSERT INTO packs SELECT 701, 744, ` + columns + `258`, verify.RecordAltered, 701},
		"terms removed":          {`DELETE FROM terms WHERE pack = 2 AND field = 'peer'`, verify.IndexAltered, 0},
		"a term removed":         {`DELETE FROM terms WHERE pack = 2 AND field = 'peer' AND value = 'agent://p3'`, verify.IndexAltered, 0},
		"a term changed":         {`UPDATE terms SET value = 'agent://p9' WHERE pack = 2 AND field = 'peer' AND value = 'agent://p3'`, verify.IndexAltered, 0},
		"a term that counts":     {`UPDATE terms SET records = records + 1 WHERE pack = 2 AND field = 'kind' AND value = 'rpc_call'`, verify.IndexAltered, 0},
		"a term added":           {`INSERT INTO terms VALUES ('peer', 'agent://nobody', 2, 1, x'00')`, verify.IndexAltered, 0},
		"a term of no pack":      {`INSERT INTO terms VALUES ('peer', 'agent://nobody', 5, 1, x'00')`, verify.IndexAltered, 0},
		"a record out of a set":  {`UPDATE terms SET positions = x'00' WHERE pack = 2 AND field = 'peer' AND value = 'agent://p3'`, verify.IndexAltered, 0},
		"a place for another":    {`UPDATE terms SET positions = CAST(x'00' || substr(positions, 2) AS BLOB) WHERE pack = 2 AND field = 'kind' AND value = 'tool_call'`, verify.IndexAltered, 0},
		"a bitmap":               {`UPDATE terms SET positions = CAST(x'00' || substr(positions, 2) AS BLOB) WHERE pack = 2 AND field = 'capability' AND value = 'answer-2'`, verify.IndexAltered, 0},
		"all for some":           {`UPDATE terms SET positions = x'' WHERE pack = 2 AND field = 'peer' AND value = 'agent://p3'`, verify.IndexAltered, 0},
		"some for all":           {`UPDATE terms SET positions = zeroblob(32) WHERE pack = 2 AND field = 'tenant'`, verify.IndexAltered, 0},
		"sets exchanged":         {`UPDATE terms SET positions = (SELECT positions FROM terms WHERE pack = 2 AND value = 'agent://p2') WHERE pack = 2 AND value = 'agent://p3'`, verify.IndexAltered, 0},
		"a set cut off":          {`UPDATE terms SET positions = CAST(substr(positions, 1, 2) AS BLOB) WHERE pack = 2 AND value = 'agent://p3'`, verify.IndexAltered, 0},
		"a set too long":         {`UPDATE terms SET positions = zeroblob(5000) WHERE pack = 2 AND value = 'agent://p3'`, verify.IndexAltered, 0},
		"no set behind others":   {`UPDATE terms SET positions = NULL WHERE pack < 9000; UPDATE terms SET positions = x'00' WHERE pack = 2 AND value = 'agent://p3'`, verify.IndexAltered, 0},
		"a set moved to a value": {`UPDATE terms SET value = value || 'x', records = 1 WHERE pack = 2 AND value = 'agent://p3'`, verify.IndexAltered, 0},
		"a filter emptied":       {`UPDATE filters SET bits = zeroblob(length(bits)) WHERE pack = 2`, verify.IndexAltered, 0},
		"a filter filled":        {`UPDATE filters SET bits = x'ff' WHERE pack = 2`, verify.IndexAltered, 0},
		"a filter removed":       {`DELETE FROM filters WHERE pack = 2`, verify.IndexAltered, 0},
		"two filters exchanged":  {`UPDATE filters SET bits = (SELECT bits FROM filters WHERE pack = 608) WHERE pack = 258`, verify.IndexAltered, 0},
		"the table":              {`ALTER TABLE packs ADD COLUMN x INTEGER`, verify.SchemaAltered, 0},
		"no positions":           {`ALTER TABLE terms DROP COLUMN positions`, verify.SchemaAltered, 0},
		"a version with none":    {`PRAGMA user_version = 2`, verify.SchemaAltered, 0},
		"no terms":               {`DROP TABLE terms`, verify.SchemaAltered, 0},
		"a version before":       {`PRAGMA user_version = 1`, verify.SchemaAltered, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := original.Copy(t)
			s.SQL(test.sql)
			report := audittest.VerifyPath(t, s.Path, auditchain.VerifyOptions{})
			audittest.WantFault(t, report, test.class, test.seq)
			if detail := report.Faults[0].Detail; test.class == verify.IndexAltered && !strings.Contains(detail, "record 2 ") &&
				!strings.Contains(detail, "record 258 ") && !strings.Contains(detail, "record 5 ") {
				t.Errorf("no record is named: %s", detail)
			}
		})
	}
}

// Numbers in the file may be any. None of them keeps a verification, a query or a start busy for
// ever, fails it with an error of SQLite's, or hides the records that are there; and a quarantine
// takes them out.
func TestLargestNumbers(t *testing.T) {
	t.Parallel()
	original := packedLog(t)
	const pack = `, ts, '[""]', '[""]', x'', x'', '[]' FROM records WHERE seq = 700`
	const row = `, ts, tenant, kind, peer, capability, side, correlation, session, body, salt, digest, hash, NULL FROM records WHERE seq = 700`
	for name, test := range map[string]struct {
		sql   string
		class auditchain.FaultClass
		seq   int64
	}{
		"a row":              {`INSERT INTO records SELECT 9223372036854775807` + row, verify.RecordMissing, 702},
		"a pack":             {`INSERT INTO packs SELECT 9223372036854775807, 9223372036854775807` + pack, verify.RecordMissing, 702},
		"a pack up to there": {`INSERT INTO packs SELECT 702, 9223372036854775807` + pack, verify.RecordAltered, 702},
		"a pack up to there after a gap": {`INSERT INTO packs SELECT 9223372036854770000, 9223372036854775807` + pack + `;
			INSERT INTO tree VALUES (0, 9223372036854775807, zeroblob(32))`, verify.RecordMissing, 702},
		"a pack that ends before it begins": {`INSERT INTO packs SELECT 702, 5` + pack, verify.RecordAltered, 702},
		"a pack whose numbers overflow": {`INSERT INTO packs SELECT 9223372036854775797, -9223372036854775777, ts, tenants, kinds, hashes, salts, bodies FROM packs WHERE first = 258`,
			verify.RecordMissing, 702},
		"a checkpoint": {`INSERT INTO checkpoints VALUES (9223372036854775807, 1, 'x')`, verify.CheckpointForged, math.MaxInt64},
		"a genuine checkpoint": {`INSERT INTO checkpoints SELECT 9223372036854775807, ts, note FROM checkpoints WHERE size = 701`,
			verify.CheckpointForged, math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := original.Copy(t)
			l := audittest.OpenAt(t, s.Path, auditchain.Options{})
			if err := l.CloseWith(stopped); err != nil {
				t.Fatal(err)
			}
			s.SQL(test.sql)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // rather than for ever
			defer cancel()
			r := audittest.OpenReader(t, s.Path)
			report, err := r.Verify(ctx, auditchain.VerifyOptions{})
			if err != nil {
				t.Fatal(err)
			}
			audittest.WantFault(t, report, test.class, test.seq)
			for _, f := range report.Faults {
				if f.Seq < 0 || f.Last < 0 {
					t.Errorf("a fault of no record: %v", f)
				}
			}
			for _, f := range []auditchain.Filter{{}, {Since: time.UnixMilli(1)}, {Until: time.Now().AddDate(500, 0, 0)}, {Order: auditchain.NewestFirst}} {
				n, told := 0, error(nil)
				for e, err := range r.Query(ctx, f) {
					if told = err; err == nil && e.Seq <= 701 {
						n++
					}
				}
				if n != 701 && auditchain.CodeOf(told) != auditchain.CodeTampered {
					t.Errorf("%+v: %d records, %v", f, n, told)
				}
			}
			_, err = auditchain.Open(ctx, s.Path, auditchain.Options{})
			audittest.WantCode(t, err, auditchain.CodeTampered)
			if q, err := auditchain.Quarantine(ctx, s.Path, "a far number"); err != nil || q.Signed != 701 {
				t.Fatalf("%+v, %v", q, err)
			}
			audittest.Close(t, audittest.OpenAt(t, s.Path, auditchain.Options{}))
			audittest.WantIntact(t, audittest.VerifyPath(t, s.Path, auditchain.VerifyOptions{}), 702)
		})
	}
}

// A log that has a pack at its end, or over the last of what is signed, that nobody of the log has written is not opened, and
// quarantine takes the pack out: whole, also if it claims records that are signed, which are
// there all the same.
func TestForgedPackAtTheEnd(t *testing.T) {
	t.Parallel()
	original := packedLog(t)
	for name, test := range map[string]struct{ first, last, of int64 }{
		"after what is signed":           {701, 744, 258},
		"over the last signed rows":      {690, 733, 258},
		"of nothing that can be read":    {701, 703, 258},
		"over signed packs and rows":     {500, 755, 2},
		"one that cannot be read at all": {690, 720, 258},
		"in a signed pack":               {30, 73, 258},
		"of some of its own numbers":     {270, 280, 258},
		"over signed rows":               {305, 348, 258},
		"in the last signed pack":        {640, 645, 258},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := original.Copy(t)
			s.SQL(`INSERT INTO packs SELECT ?, ?, ts, tenants, kinds, hashes, salts, bodies FROM packs WHERE first = ?`, test.first, test.last, test.of)
			_, err := auditchain.Open(t.Context(), s.Path, auditchain.Options{})
			audittest.WantCode(t, err, auditchain.CodeTampered)
			q, err := auditchain.Quarantine(t.Context(), s.Path, "a forged pack")
			if err != nil || q.Records != test.last-test.first+1 {
				t.Fatalf("%+v, %v", q, err)
			}
			audittest.WantIntact(t, audittest.VerifyPath(t, s.Path, auditchain.VerifyOptions{}), 701)
			l := audittest.OpenAt(t, s.Path, auditchain.Options{})
			appendCalls(t, l, 0, 20)
			audittest.WantIntact(t, audittest.Verify(t, l.Reader, auditchain.VerifyOptions{}), 721)
		})
	}
}

const forgedRow = `INSERT INTO records SELECT ?, ts, tenant, kind, peer, capability, side, correlation, session, body, salt, digest, hash, NULL FROM records WHERE seq = 302`

// Several forgeries over signed records are taken out as well, and rows as packs are.
func TestForgeriesOverSignedRecords(t *testing.T) {
	t.Parallel()
	s := packedLog(t)
	s.SQL(forgedRow, 40)
	s.SQL(forgedRow, 400)
	s.SQL(`INSERT INTO packs SELECT 600, 643, ts, tenants, kinds, hashes, salts, bodies FROM packs WHERE first = 258`)
	_, err := auditchain.Open(t.Context(), s.Path, auditchain.Options{})
	audittest.WantCode(t, err, auditchain.CodeTampered)
	q, err := auditchain.Quarantine(t.Context(), s.Path, "forged records")
	if err != nil || q.Records != 46 {
		t.Fatalf("%+v, %v", q, err)
	}
	checkEvidence(t, q)
	audittest.WantIntact(t, audittest.VerifyPath(t, s.Path, auditchain.VerifyOptions{}), 701)
	audittest.Close(t, audittest.OpenAt(t, s.Path, auditchain.Options{}))
}

// A pack that is forged while the log is open does not put its hashes in the place of those of
// pruned records.
func TestPruneOverAForgedPack(t *testing.T) {
	t.Parallel()
	s := packedLog(t)
	l := audittest.OpenAt(t, s.Path, auditchain.Options{})
	s.SQL(`INSERT INTO packs SELECT 305, 348, ts, tenants, kinds, hashes, salts, bodies FROM packs WHERE first = 258`)
	_, err := l.Prune(t.Context(), time.Now(), "retention")
	audittest.WantCode(t, err, auditchain.CodeTampered)
	s.SQL(`DELETE FROM packs WHERE first = 305`)
	audittest.WantIntact(t, audittest.Verify(t, l.Reader, auditchain.VerifyOptions{}), 700)
	if p, err := l.Prune(t.Context(), time.Now(), "retention"); err != nil || p.Count != 700 {
		t.Errorf("%+v, %v", p, err)
	}
	audittest.WantIntact(t, audittest.Verify(t, l.Reader, auditchain.VerifyOptions{}), 1)
}

// A log of version 1 goes on as version 2: what it has stays as it is, byte for byte, and new
// records of calls are packed.
func TestVersion1GoesOn(t *testing.T) {
	t.Parallel()
	path := audittest.CopyLog(t, golden)
	s := audittest.SceneAt(t, path)
	rows := func() (text string) {
		t.Helper()
		err := s.DB().QueryRowContext(t.Context(), `SELECT group_concat(hex(hash) || hex(digest) || seq || ts || tenant || kind || coalesce(body || hex(salt), '-'))
			FROM (SELECT * FROM records WHERE seq <= 12 ORDER BY seq)`).Scan(&text)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	old := audittest.OpenReader(t, path) // it was open before, and goes on reading
	before, entries := rows(), audittest.Collect(t, old, auditchain.Filter{})
	proof := mustProve(t, old, 5)
	l := audittest.OpenAt(t, path, auditchain.Options{ReplaceLostKey: true})
	appendCalls(t, l, 0, 100)
	if rows() != before {
		t.Error("the records of version 1 were changed")
	}
	if n, records := packs(t, s); n != 1 || records != 100 {
		t.Errorf("%d packs of %d records", n, records)
	}
	audittest.WantIntact(t, audittest.Verify(t, l.Reader, auditchain.VerifyOptions{}), int64(len(entries))+101)
	for _, r := range []*auditchain.Reader{old, l.Reader} {
		if got := audittest.Collect(t, r, auditchain.Filter{}); len(got) != len(entries)+101 {
			t.Errorf("%d records are read", len(got))
		}
		if got := audittest.Get(t, r, 5); got.Hash != entries[2].Hash || proof.Record.Digest != mustProve(t, r, 5).Record.Digest {
			t.Errorf("record 5 is %+v", got)
		}
	}
}

// A log of version 2 goes on as version 3: what finds its packs stays as it is and finds them, before
// and after, and new packs have sets. Who has it open goes on reading.
func TestVersion2GoesOn(t *testing.T) {
	t.Parallel()
	path := audittest.CopyLog(t, goldenPacked)
	s := audittest.SceneAt(t, path)
	old := audittest.OpenReader(t, path)
	unknown := func() (packs int) {
		t.Helper()
		if err := s.DB().QueryRowContext(t.Context(), `SELECT count(DISTINCT pack) FROM terms WHERE positions IS NULL`).Scan(&packs); err != nil {
			t.Fatal(err)
		}
		return packs
	}
	checkReader := func(r *auditchain.Reader) {
		t.Helper()
		all := audittest.Collect(t, r, auditchain.Filter{})
		for _, f := range []auditchain.Filter{
			{Peer: "agent://p3"}, {Peer: "agent://p3", Capability: "answer-2"}, {Tenant: "default", Peer: "agent://p1", Order: auditchain.NewestFirst, Limit: 3},
			{Correlation: audittest.Correlation(7), Peer: "agent://p2"}, {Session: "s1", Capability: "answer-0"}, {Kinds: []auditchain.Kind{auditchain.KindToolCall}},
		} {
			if got, want := audittest.Collect(t, r, f), chosen(all, f); len(want) == 0 || !reflect.DeepEqual(got, want) {
				t.Errorf("%+v: %d entries, want %d", f, len(got), len(want))
			}
		}
		audittest.WantIntact(t, audittest.Verify(t, r, auditchain.VerifyOptions{}), int64(len(all)))
	}
	checkReader(old)
	l := audittest.OpenAt(t, path, auditchain.Options{ReplaceLostKey: true})
	appendCalls(t, l, 100, 200)
	if n := unknown(); n != 1 {
		t.Errorf("%d packs have no sets", n)
	}
	checkReader(old)
	checkReader(l.Reader)
	// Whoever takes sets away hides nothing, and who changes one is found.
	s.SQL(`UPDATE terms SET positions = NULL`)
	checkReader(old)
	s.SQL(`UPDATE terms SET positions = x'00' WHERE pack = 2 AND field = 'peer' AND value = 'agent://p3'`)
	audittest.WantFault(t, audittest.Verify(t, old, auditchain.VerifyOptions{}), verify.IndexAltered, 0)
}

// A quarantine keeps the signed pack where the forged record has its hash, and what was signed with
// the log's own key where a forged change of keys names another one.
func TestQuarantineKeepsSignedPacks(t *testing.T) {
	t.Parallel()
	original := packedLog(t)
	for name, sql := range map[string]string{
		"a row with the hash of the last record of a pack": `INSERT INTO records SELECT 257, ts, tenant, kind, peer, capability, side, correlation, session, body, salt, digest,
			(SELECT CAST(substr(hashes, 255 * 32 + 1, 32) AS BLOB) FROM packs WHERE first = 2), NULL FROM records WHERE seq = 302`,
		"a change of keys": `INSERT INTO records SELECT 40, ts, tenant, 'checkpoint', NULL, NULL, NULL, NULL, NULL,
			'{"event":"key-rotated","key":"x","previous":"y"}', salt, digest, hash, NULL FROM records WHERE seq = 302`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := original.Copy(t)
			s.SQL(sql)
			_, err := auditchain.Open(t.Context(), s.Path, auditchain.Options{})
			audittest.WantCode(t, err, auditchain.CodeTampered)
			q, err := auditchain.Quarantine(t.Context(), s.Path, "a forged row")
			if err != nil || q.Records != 1 || q.Signed != 700 {
				t.Fatalf("%+v, %v", q, err)
			}
			audittest.WantIntact(t, audittest.VerifyPath(t, s.Path, auditchain.VerifyOptions{}), 701)
			audittest.Close(t, audittest.OpenAt(t, s.Path, auditchain.Options{}))
		})
	}
}

// Nor does what is forged in the place of pruned records, which a quarantine takes out.
func TestPruneOverForgedPrunedRecords(t *testing.T) {
	t.Parallel()
	for name, forge := range map[string]func(s *audittest.Scene) (records int64){
		"a pack": func(s *audittest.Scene) int64 {
			s.SQL(`INSERT INTO packs SELECT 305, 348, ts, tenants, kinds, hashes, salts, bodies FROM packs WHERE first = 710`)
			return 44
		},
		"a row": func(s *audittest.Scene) int64 {
			s.SQL(`INSERT INTO records SELECT 310, ts, tenant, 'lifecycle', peer, capability, side, correlation, session, '{}', salt, digest, hash, NULL FROM records WHERE seq = 701`)
			return 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := packedLog(t)
			l := audittest.OpenAt(t, s.Path, auditchain.Options{})
			if p, err := l.Prune(t.Context(), time.Now(), "retention"); err != nil || p.Count != 700 {
				t.Fatalf("%+v, %v", p, err)
			}
			for seq := 702; seq < 710; seq++ {
				audittest.Append(t, l, call(seq))
			}
			appendCalls(t, l, 710, 754)
			records := forge(s)
			_, err := l.Prune(t.Context(), time.Now(), "retention")
			audittest.WantCode(t, err, auditchain.CodeTampered)
			audittest.Close(t, l)
			_, err = auditchain.Open(t.Context(), s.Path, auditchain.Options{})
			audittest.WantCode(t, err, auditchain.CodeTampered)
			q, err := auditchain.Quarantine(t.Context(), s.Path, "forged records")
			if err != nil || q.Records != records {
				t.Fatalf("%+v, %v", q, err)
			}
			l = audittest.OpenAt(t, s.Path, auditchain.Options{})
			audittest.WantIntact(t, audittest.Verify(t, l.Reader, auditchain.VerifyOptions{}), 54)
			if _, err := l.Prune(t.Context(), time.Now(), "retention"); err != nil {
				t.Fatal(err)
			}
			audittest.WantIntact(t, audittest.Verify(t, l.Reader, auditchain.VerifyOptions{}), 1)
		})
	}
}
