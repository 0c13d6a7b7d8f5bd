// Package export brings audit records to where an organisation collects its
// logs: as JSON lines, OCSF events, OTLP log records or CEF lines.
//
// [Run] reads a log from a durable [Cursor] on, encodes records in batches and
// hands each to a [Sink]. The cursor moves when the sink has taken the batch:
// no record is lost over a restart. Into a [FileSink] no record is doubled
// either, since the cursor also knows the length of the file. A receiver over a
// network may see the last batch twice; every record carries the log's origin
// and its number, which together are unique everywhere.
//
// The sink sets the pace: nothing is read ahead of it, and memory holds one
// batch.
//
// Redaction and prune records are exported like others. They list what was
// erased, so that a receiver can erase its copies.
package export
