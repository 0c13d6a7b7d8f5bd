// Package truncate bounds text that a peer or a file has chosen before it goes
// into an error, a log or a record.
package truncate
