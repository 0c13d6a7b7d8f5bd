// Package query reads a log's records: those that a [Filter] chooses ([Run]),
// also as they are appended ([Follow]), one by number ([Get]), and counts of
// them ([ReadStats]).
//
// It never holds up the writer: each page is a short transaction of its own, and
// every page comes from one index, in order, without sorting.
package query
