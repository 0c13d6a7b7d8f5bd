// Package export sends audit records to an organisation's log collection, as JSON
// lines, OCSF events, OTLP log records or CEF lines.
//
// [Run] reads a log from a durable [Cursor], encodes records in batches and hands
// each batch to a [Sink]. The cursor moves after the sink has taken the batch, so
// no record is lost over a restart (at-least-once delivery). A [FileSink] does
// not repeat a record either, because the cursor also holds the length of the
// file. A receiver on a network may see the last batch twice; every record
// carries the log's origin and its number, which together are globally unique.
//
// The sink sets the pace: nothing is read ahead of it, and memory holds one
// batch.
//
// Redaction and prune records are exported like others. They list the erased
// records, so that a receiver can erase its copies.
package export
