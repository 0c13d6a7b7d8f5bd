// Package publish takes signed checkpoints out of the database: into the file
// beside it and to the witnesses. It runs beside the writer and never delays it.
package publish
