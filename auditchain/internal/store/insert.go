package store

import (
	"context"
	"database/sql"
	"strings"

	"github.com/agentd/agentd/auditchain/internal/chainhash"
	"github.com/agentd/agentd/auditchain/internal/record"
	"golang.org/x/mod/sumdb/tlog"
)

const (
	// rowsPerInsert is how many rows one statement adds where as many are there: each
	// execution has a price of its own.
	rowsPerInsert = 16
	// rowColumns is how many columns an insert sets.
	rowColumns = 13

	insertRows = `INSERT INTO records
			(seq, ts, tenant, kind, peer, capability, side, correlation, session, body, salt, digest, hash)
			VALUES `
	rowValues = `(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
)

// A Row is a record at its place in the chain.
type Row struct {
	*record.Prepared
	Hash tlog.Hash
}

// An inserter adds rows to the table records. It allocates as little as the driver allows:
// it reuses its arguments, and what is the same from row to row is converted once.
type inserter struct {
	one, many *sql.Stmt
	args      []any
	slots     [rowsPerInsert]slot
	last      [rowColumns]column
}

// A slot is the memory of one row's fixed-size arguments.
type slot struct {
	salt         [chainhash.SaltSize]byte
	digest, hash tlog.Hash
}

// A column is the last text of a column, and the same as an argument.
type column struct {
	text  string
	value any
}

func (in *inserter) prepare(ctx context.Context, conn *sql.Conn) (err error) {
	if in.one, err = conn.PrepareContext(ctx, insertRows+rowValues); err != nil {
		return err
	}
	in.many, err = conn.PrepareContext(ctx, insertRows+strings.Repeat(rowValues+", ", rowsPerInsert-1)+rowValues)
	// Slices of a slot stay in their places, and so cost nothing in later rows.
	in.args = make([]any, rowsPerInsert*rowColumns)
	for i := range in.slots {
		s, args := &in.slots[i], in.args[i*rowColumns:]
		args[10], args[11], args[12] = s.salt[:], s.digest[:], s.hash[:]
	}
	return err
}

// insert adds rows, in their order.
func (in *inserter) insert(rows []Row) error {
	defer in.forget()
	for ; len(rows) >= rowsPerInsert; rows = rows[rowsPerInsert:] {
		if err := in.run(in.many, rows[:rowsPerInsert]); err != nil {
			return err
		}
	}
	for i := range rows {
		if err := in.run(in.one, rows[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// run executes a statement that adds as many rows. It takes no context: a cancellation in
// the middle would leave it unknown what the transaction holds.
func (in *inserter) run(stmt *sql.Stmt, rows []Row) error {
	for i, row := range rows {
		in.fill(i, row)
	}
	_, err := stmt.ExecContext(context.Background(), in.args[:len(rows)*rowColumns]...)
	return err
}

// forget lets go of the texts of rows: bodies may be long, and what was derived from one keeps
// all of it.
func (in *inserter) forget() {
	for i := range in.slots {
		clear(in.args[i*rowColumns+2 : i*rowColumns+10])
	}
	clear(in.last[:])
}

// fill sets the arguments of the row in slot i.
func (in *inserter) fill(i int, row Row) {
	args, s := in.args[i*rowColumns:(i+1)*rowColumns], &in.slots[i]
	h, c := &row.Header, &row.Content
	args[0], args[1] = h.Seq, h.Time
	for k, text := range [...]string{h.Tenant, h.Kind, c.Peer, c.Capability, c.Side, c.Correlation, c.Session} {
		args[2+k] = in.value(2+k, text)
	}
	args[9] = c.Body
	s.salt, s.digest, s.hash = row.Salt, h.Digest, row.Hash
}

// value returns the text of a column as an argument: NULL for an absent one, so that the
// partial indexes do not hold it.
func (in *inserter) value(k int, text string) any {
	if text == "" {
		return nil
	}
	if last := &in.last[k]; last.text != text {
		*last = column{text, text}
	}
	return in.last[k].value
}

// InsertRecords adds records, neighbours that may be packed as packs if they are enough, and
// the others as rows. Without an error, all are there.
func (w *Writer) InsertRecords(rows ...Row) error {
	single := 0 // the first of the records that become rows
	packed := false
	for at := 0; at < len(rows); {
		n := w.packer.run(rows[at:])
		if n < minPacked {
			at += max(1, n)
			continue
		}
		if err := w.insert.insert(rows[single:at]); err != nil {
			return err
		}
		if err := w.packer.insert(rows[at : at+n]); err != nil {
			return err
		}
		packed = true
		at += n
		single = at
	}
	if packed {
		w.packer.forget()
	}
	return w.insert.insert(rows[single:])
}
