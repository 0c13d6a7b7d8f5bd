// Package ijson scans JSON text strictly and without allocating.
//
// It accepts the values of RFC 8259 under the restrictions of I-JSON
// (RFC 7493) that decide whether two readers see the same value: input is
// valid UTF-8, no string holds a lone surrogate, and no object holds the same
// member name twice, where names are compared after unescaping. Two rules of
// RFC 7493 are left to the callers: the range of numbers, because the schema
// engine compares numbers exactly at any size, and Unicode noncharacters,
// which Unicode allows in interchange since its Corrigendum 9.
//
// The package reports where a value ends; it builds no tree. The functions
// are safe for concurrent use. A [Scanner] is not: it owns the scratch space
// in which member names are compared.
package ijson
