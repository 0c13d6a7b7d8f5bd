package store

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/agentd/agentd/auditchain/internal/chainhash"
	"github.com/agentd/agentd/auditchain/internal/record"
	"golang.org/x/mod/sumdb/tlog"
)

// packedRows returns count rows that may be packed.
func packedRows(t testing.TB, count int) []Row {
	t.Helper()
	rows := make([]Row, count)
	for i := range rows {
		p := &record.Prepared{}
		if err := p.Prepare(&record.Record{Kind: record.KindRPCCall, Tenant: []string{"a", "b"}[i%2], Body: fmt.Appendf(nil,
			`{"a":[{"b":"]}"}],"capabilityName":"c","correlationId":"c-%d","peerId":"agent://\"%d\"","side":"request","sessionId":"s"}`, i, i%3)}); err != nil {
			t.Fatal(err)
		}
		p.Header.Seq, p.Header.Time = int64(i+1), 7
		rows[i] = Row{Prepared: p, Hash: tlog.Hash{byte(i)}}
	}
	return rows
}

// encoded returns rows as a pack.
func encoded(rows []Row) *pack {
	var pk packer
	pk.encode(rows)
	return &pack{
		first: rows[0].Header.Seq, last: rows[len(rows)-1].Header.Seq, time: rows[0].Header.Time,
		tenants: pk.tenants, kinds: pk.kinds, hashes: pk.hashes, salts: pk.salts, bodies: pk.bodies,
	}
}

// What is packed is read back as it was, with its digests.
func TestPackIsItsRows(t *testing.T) {
	t.Parallel()
	for _, count := range []int{1, 2, minPacked, maxPacked} {
		rows := packedRows(t, count)
		var u unpacker
		records, err := u.read(encoded(rows))
		if err != nil || len(records) != count {
			t.Fatalf("%d records of %d, %v", len(records), count, err)
		}
		for i := range records {
			got := rowOf(&records[i], u.digest(&records[i]))
			if got.Header != rows[i].Header || got.Content != rows[i].Content || got.Salt != rows[i].Salt || got.Hash != rows[i].Hash {
				t.Errorf("record %d is %+v, want %+v", i, got.Prepared, rows[i].Prepared)
			}
		}
		if got, want := new(LookupCollector).of(records), new(LookupCollector).ofRows(rows); !sameLookup(got, want) {
			t.Errorf("the lookup is %+v, want %+v", got, want)
		}
	}
}

func sameLookup(a, b *Lookup) bool {
	if a.Pack != b.Pack || !bytes.Equal(a.Filter, b.Filter) || len(a.Terms) != len(b.Terms) {
		return false
	}
	for _, t := range b.Terms {
		if !slices.ContainsFunc(a.Terms, func(other Term) bool { return reflect.DeepEqual(other, t) }) {
			return false
		}
	}
	return true
}

// A pack has one form; whatever else is in its row is refused.
func TestPacksThatAreNone(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(p *pack){
		"no records":              func(p *pack) { p.hashes, p.salts, p.bodies, p.last = nil, nil, []byte("[]"), p.first-1 },
		"a record more by number": func(p *pack) { p.last++ },
		"numbers from 0":          func(p *pack) { p.first, p.last = 0, p.last-1 },
		"numbers beyond all":      func(p *pack) { p.first, p.last = 1, 1<<63-1 },
		"numbers that overflow":   func(p *pack) { p.first, p.last = 1<<63-5, -1<<63+4 },
		"half a hash":             func(p *pack) { p.hashes = p.hashes[:len(p.hashes)-16] },
		"a hash less":             func(p *pack) { p.hashes = p.hashes[:len(p.hashes)-32] },
		"a salt less":             func(p *pack) { p.salts = p.salts[16:] },
		"white space":             func(p *pack) { p.bodies = bytes.ReplaceAll(p.bodies, []byte("},{"), []byte("}, {")) },
		"white space at the end":  func(p *pack) { p.bodies = append(p.bodies, ' ') },
		"a body more":             func(p *pack) { p.bodies = append(p.bodies[:len(p.bodies)-1], ",{}]"...) },
		"a body that is a text":   func(p *pack) { p.bodies = append(p.bodies[:len(p.bodies)-1], `,""]`...) },
		"an open body":            func(p *pack) { p.bodies = p.bodies[:len(p.bodies)-3] },
		"no array":                func(p *pack) { p.bodies = []byte(`{}`) },
		"tenants of half":         func(p *pack) { p.tenants = []byte(`["a","b","a","b"]`) },
		"tenants that are alike":  func(p *pack) { p.tenants = []byte(`["a","a","a","a","a","a","a","a"]`) },
		"tenants escaped":         func(p *pack) { p.tenants = []byte(`["\u0061"]`) },
		"a tenant of no type":     func(p *pack) { p.tenants = []byte(`[null]`) },
		"a kind of the log's own": func(p *pack) { p.kinds = []byte(`["prune"]`) },
		"a kind of rows":          func(p *pack) { p.kinds = []byte(`["lifecycle"]`) },
		"no kinds":                func(p *pack) { p.kinds = []byte(`[]`) },
	} {
		p := encoded(packedRows(t, minPacked))
		damage(p)
		if records, err := new(unpacker).read(p); err == nil {
			t.Errorf("%s: %d records", name, len(records))
		}
	}
}

// Whatever is in the row of a pack, reading it neither panics nor returns a record that the
// pack does not hold: what is read makes the same row again.
func FuzzPack(f *testing.F) {
	for _, count := range []int{1, minPacked} {
		p := encoded(packedRows(f, count))
		f.Add(p.first, p.last, p.time, p.tenants, p.kinds, p.hashes, p.salts, p.bodies)
	}
	f.Add(int64(1), int64(1), int64(0), []byte(`[""]`), []byte(`["rpc_call"]`), make([]byte, 32), make([]byte, 16), []byte(`[{"peerId":"\ud800"}]`))
	f.Fuzz(func(t *testing.T, first, last, time int64, tenants, kinds, hashes, salts, bodies []byte) {
		p := &pack{first, last, time, tenants, kinds, hashes, salts, bodies}
		var u unpacker
		records, err := u.read(p)
		if err != nil {
			return
		}
		rows := make([]Row, len(records))
		for i := range records {
			rows[i] = rowOf(&records[i], u.digest(&records[i]))
		}
		again := encoded(rows)
		if again.first != first || again.last != last || again.time != time || !bytes.Equal(again.tenants, tenants) || !bytes.Equal(again.kinds, kinds) ||
			!bytes.Equal(again.hashes, hashes) || !bytes.Equal(again.salts, salts) || !bytes.Equal(again.bodies, bodies) {
			t.Errorf("%+v\nbecame %+v", p, again)
		}
		_ = new(LookupCollector).of(records)
	})
}

// A filter has every value of its pack, and few others.
func TestFilters(t *testing.T) {
	t.Parallel()
	l := new(LookupCollector).ofRows(packedRows(t, maxPacked))
	for i := range maxPacked {
		if !NewFilterKey("correlation", fmt.Sprintf("c-%d", i)).In(l.Filter) {
			t.Errorf("c-%d is not in the filter", i)
		}
	}
	if !NewFilterKey("session", "s").In(l.Filter) {
		t.Error("the session is not in the filter")
	}
	others := 0
	for i := range 10000 {
		if NewFilterKey("correlation", fmt.Sprintf("d-%d", i)).In(l.Filter) {
			others++
		}
	}
	if others > 100 { // 10 are expected
		t.Errorf("%d of 10000 values of no record are in the filter", others)
	}
	if !NewFilterKey("session", "s").In(nil) {
		t.Error("a filter without bits hides a pack")
	}
}

// Neighbours that may be packed are, from minPacked on, and in packs of at most maxPacked.
func TestWhatIsPacked(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		count        int
		change       func(rows []Row)
		packs, alone int
	}{
		"too few":            {minPacked - 1, nil, 0, minPacked - 1},
		"enough":             {minPacked, nil, 1, 0},
		"a full one and few": {maxPacked + minPacked - 1, nil, 1, minPacked - 1},
		"two":                {maxPacked + minPacked, nil, 2, 0},
		"another in between": {2*minPacked + 1, func(rows []Row) { rows[minPacked].Packable = false }, 2, 1},
		"another time":       {2 * minPacked, func(rows []Row) { rows[minPacked].Header.Time++ }, 1, minPacked},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := emptyLog(t)
			rows := packedRows(t, test.count)
			if test.change != nil {
				test.change(rows)
			}
			if err := w.Begin(); err != nil {
				t.Fatal(err)
			}
			if err := w.InsertRecords(rows...); err != nil {
				t.Fatal(err)
			}
			var packs, alone int
			err := w.QueryRowContext(t.Context(), `SELECT (SELECT count(*) FROM packs), (SELECT count(*) FROM records)`).Scan(&packs, &alone)
			if err != nil || packs != test.packs || alone != test.alone {
				t.Errorf("%d packs and %d rows, %v", packs, alone, err)
			}
			next := int64(1)
			for r, err := range w.Records(context.Background(), 1, int64(test.count)) {
				if err != nil || r.Seq != next || string(r.Body) != rows[r.Seq-1].Content.Body || tlog.Hash(r.Digest) != rows[r.Seq-1].Header.Digest {
					t.Fatalf("record %d: %+v, %v", next, r, err)
				}
				next++
			}
			if next != int64(test.count)+1 {
				t.Errorf("%d records", next-1)
			}
			if err := w.Rollback(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// The packer keeps nothing of what records say.
func TestPackerKeepsNoTexts(t *testing.T) {
	t.Parallel()
	w := emptyLog(t)
	if err := w.Begin(); err != nil {
		t.Fatal(err)
	}
	if err := w.InsertRecords(packedRows(t, minPacked)...); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	if bytes.ContainsAny(w.packer.bodies, "c") || len(bytes.Trim(w.packer.salts[:chainhash.SaltSize], "\x00")) > 0 {
		t.Errorf("the packer still has %s", w.packer.bodies)
	}
}

func emptyLog(t *testing.T) *Writer {
	t.Helper()
	w, err := OpenWriter(t.Context(), filepath.Join(t.TempDir(), "audit.db"), SQLite)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	if err := w.Create(t.Context(), Identity{Origin: "log.example/1", FirstKey: "key"}); err != nil {
		t.Fatal(err)
	}
	if err := w.Load(t.Context(), SchemaVersion); err != nil {
		t.Fatal(err)
	}
	return w
}
