// Package search finds the sections of Markdown notes that fit a query.
//
// [Load] cuts the notes of a folder at their second-level headings.
// [Index.Search] ranks the sections by the words that they share with the
// query: a rare word weighs more than a common one (inverse document
// frequency), and a word in a heading twice as much as one in the text. Words
// are compared in lower case and without a plural s, so "leaked keys" finds the
// rule leaked-key. An index is small enough to be built for each query.
package search
