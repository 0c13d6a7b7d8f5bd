package query

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/record"
	"github.com/agentd/agentd/auditchain/internal/sidecar"
	"github.com/agentd/agentd/auditchain/internal/store"
)

// maxStatsValues bounds the values of each column that [Stats] lists.
const maxStatsValues = 100

// Stats describes a log.
type Stats struct {
	// Path is the database file, Origin the log's name.
	Path   string `json:"path"`
	Origin string `json:"origin"`
	// Bytes is the size of the database file and its write-ahead log.
	Bytes int64 `json:"bytes"`
	// Records counts the records in the database; Last is the number of the
	// newest.
	Records int64 `json:"records"`
	Last    int64 `json:"last"`
	// Erased counts records without content, Pruned removed ones.
	Erased int64 `json:"erased"`
	Pruned int64 `json:"pruned"`
	// Oldest and Newest are the times of the first and last record, zero in an
	// empty log.
	Oldest time.Time `json:"oldest,omitzero"`
	Newest time.Time `json:"newest,omitzero"`
	// Signed is the number of the last record under the newest checkpoint.
	Signed int64 `json:"signed"`
	// Cosigners names the witness keys that have signed the checkpoint file in
	// addition to the log's own. Their signatures are not checked here.
	Cosigners []string `json:"cosigners,omitempty"`
	// Conflict is the number of the newest record that reports a witness with
	// another history of the log, or 0. If there is one, verify the log.
	Conflict int64 `json:"conflict,omitempty"`
	// Kinds, Tenants, Peers and Capabilities count records by value, the most
	// frequent first, at most 100 of each.
	Kinds        []Count `json:"kinds"`
	Tenants      []Count `json:"tenants"`
	Peers        []Count `json:"peers"`
	Capabilities []Count `json:"capabilities"`
}

// A Count is the number of records with one value.
type Count struct {
	// Value is the column's value.
	Value string `json:"value"`
	// Records is the number of records that have it.
	Records int64 `json:"records"`
}

// ReadStats counts the contents of the log. It reads indexes and terms, not the records.
func ReadStats(ctx context.Context, db *store.DB) (*Stats, error) {
	s := &Stats{Path: db.Path, Origin: db.Identity.Origin}
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(db.Path + suffix); err == nil {
			s.Bytes += info.Size()
		}
	}
	var oldest, newest int64
	err := db.ScanPacked(ctx, `SELECT (SELECT count(*) FROM records) + (SELECT coalesce(sum(records), 0) FROM terms WHERE field = 'kind'),
		`+store.LastSQL+`, (SELECT count(*) FROM tree WHERE level = 0),
		(SELECT count(*) FROM records WHERE erased_by IS NOT NULL),
		coalesce(min((SELECT ts FROM records ORDER BY seq LIMIT 1), (SELECT ts FROM packs ORDER BY first LIMIT 1)),
			(SELECT ts FROM records ORDER BY seq LIMIT 1), (SELECT ts FROM packs ORDER BY first LIMIT 1), 0),
		max(coalesce((SELECT ts FROM records ORDER BY seq DESC LIMIT 1), 0), coalesce((SELECT ts FROM packs ORDER BY first DESC LIMIT 1), 0))`,
		nil, []any{&s.Records, &s.Last, &s.Pruned, &s.Erased, &oldest, &newest})
	if err != nil {
		return nil, db.Wrap("counting records", err)
	}
	if s.Last > 0 {
		s.Oldest, s.Newest = time.UnixMilli(oldest).UTC(), time.UnixMilli(newest).UTC()
	}
	if note, err := sidecar.ReadCheckpoint(db.Path); err == nil && note != nil {
		if c, err := checkpoint.Parse(string(note)); err == nil {
			s.Signed = c.Size
			s.Cosigners = slices.DeleteFunc(checkpoint.Signers(note), func(name string) bool { return name == s.Origin })
		}
	}
	if s.Conflict, err = newestConflict(ctx, db); err != nil {
		return nil, err
	}
	for column, into := range map[string]*[]Count{
		"kind": &s.Kinds, "tenant": &s.Tenants, "peer": &s.Peers, "capability": &s.Capabilities,
	} {
		if *into, err = countBy(ctx, db, column); err != nil {
			return nil, db.Wrap("counting by "+column, err)
		}
	}
	return s, nil
}

// countBy counts records by a column that has an index, and is among the terms of packs.
func countBy(ctx context.Context, db *store.DB, column string) ([]Count, error) {
	rows, err := db.QueryPacked(ctx, `SELECT value, sum(records) FROM (
			SELECT `+column+` AS value, count(*) AS records FROM records WHERE `+column+` IS NOT NULL GROUP BY 1
			UNION ALL SELECT value, sum(records) FROM terms WHERE field = ? GROUP BY value)
		GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ?`, column, maxStatsValues)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	counts := []Count{}
	for rows.Next() {
		var c Count
		if err := rows.Scan(&c.Value, &c.Records); err != nil {
			return nil, err
		}
		counts = append(counts, c)
	}
	return counts, rows.Err()
}

// EventWitnessConflict is the member event of a lifecycle record which reports
// that a witness has seen another history of the log.
const EventWitnessConflict = "witness-conflict"

// newestConflict returns the number of the newest such record, or 0.
func newestConflict(ctx context.Context, db *store.DB) (seq int64, err error) {
	err = db.QueryRowContext(ctx, `SELECT coalesce(max(seq), 0) FROM records WHERE kind = ? AND body ->> 'event' = ?`,
		record.KindLifecycle, EventWitnessConflict).Scan(&seq)
	return seq, db.Wrap("looking for conflicts with witnesses", err)
}
