package sqlread

import (
	"math"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/agentd/agentd/internal/ijson"
)

// Whatever text a server sends for a type, what is written is one JSON value.
func FuzzPostgresValue(f *testing.F) {
	oids := []uint32{
		pgtype.BoolOID, pgtype.Int8OID, pgtype.Float8OID, pgtype.NumericOID, pgtype.JSONOID, pgtype.JSONBOID, pgtype.ByteaOID, pgtype.TimestampOID,
		pgtype.TimestamptzOID, pgtype.DateOID, pgtype.TextOID, pgtype.TextArrayOID, pgtype.Int4ArrayOID, pgtype.JSONBArrayOID, pgtype.TimestamptzArrayOID, 0, 1 << 30,
	}
	for i, seed := range []string{
		"t", "-9007199254740993", "1e+300", "NaN", `{"a": 1, "a": 2}`, `{"a": 1.10}`, `\x00ff`, "2026-05-01 12:30:00.5", "2026-05-01 12:30:00+00", "0044-03-15 BC", "x\xff",
		`{a,"b,c",NULL,""}`, "{{1,2},{3,4}}", `{"{\"a\": 1}"}`, "{infinity}", "[2:3]={1,2}", "{",
	} {
		f.Add(uint8(i), seed)
	}
	types := pgtype.NewMap()
	f.Fuzz(func(t *testing.T, which uint8, text string) {
		out := appendPostgres(nil, types, oids[int(which)%len(oids)], []byte(text))
		if err := ijson.Check(out, ijson.DefaultMaxDepth); err != nil {
			t.Fatalf("%q became %s: %v", text, out, err)
		}
	})
}

func TestSQLiteForms(t *testing.T) {
	for _, row := range []struct {
		value any
		want  string
	}{
		{nil, "null"},
		{int64(math.MinInt64), "-9223372036854775808"},
		{0.1, "0.1"},
		{1e21, "1e+21"},
		{math.NaN(), `"NaN"`},
		{math.Inf(1), `"Infinity"`},
		{math.Inf(-1), `"-Infinity"`},
		{true, "true"},
		{"a\"\x00\xff", `"a\"\u0000�"`},
		{[]byte{}, `""`},
		{[]byte{0, 255}, `"AP8="`},
		{time.Date(2026, 5, 1, 12, 0, 0, 5, time.FixedZone("", 3600)), `"2026-05-01T11:00:00.000000005Z"`},
		{time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), `"10000-01-01 00:00:00 +0000 UTC"`},
		{uint8(7), `"7"`}, // no type of SQLite
	} {
		if got := string(appendSQLite(nil, row.value)); got != row.want {
			t.Errorf("%v became %s, not %s", row.value, got, row.want)
		}
	}
}
