// Package search ranks sections of Markdown notes by how well they fit a query.
//
// [Load] reads the notes of a folder and cuts them at their second-level
// headings; [Index.Search] ranks the sections by Okapi BM25 (Robertson and
// Zaragoza, 2009) and shows the paragraph that fits best. Words are compared
// in lower case and without a plural s, so that "leaked keys" finds the rule
// leaked-key. An index is small enough to be built for every query.
package search
