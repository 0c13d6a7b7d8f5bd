// Package review reads the unified diff of a pull request and reports what a
// careful reviewer would stop at: leaked keys, conflict markers, debugger
// statements, tests that vanish, and the like.
//
// # How it works
//
// [Source.Fetch] turns a pull request's URL into the bytes of its diff,
// [ParseDiff] into files and hunks, and [Review] into a [Report]. Only what the
// change adds is judged (and, for tests, what it removes): old faults are not
// the author's. Rules look at one line of code with its comment cut off and
// its string literals blanked, so that text about console.log is not taken for
// a call of it. [Rules] lists them; each has a stable name.
//
// # Severity and verdict
//
// The severity that is asked for is a threshold: findings below it are
// neither reported nor counted. The verdict follows from what remains:
//
//   - a high finding (it would do damage once merged): request-changes
//   - else a med finding (worth an answer by the author): comment
//   - else: approve, even with low findings; they do not hold up a merge
//
// # What it never says
//
// No message quotes a line of the diff: a leaked key must not travel on
// into responses, logs and audit chains.
package review
