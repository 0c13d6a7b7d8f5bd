// Package id makes the message and correlation ids of calls: UUIDs of version 7.
//
// Everything off the path of a call uses github.com/google/uuid. A call needs two
// ids at the caller and one at the callee, and BenchmarkSource shows why they come
// in batches: two ids of the library took 600 ns and 4 allocations where a Source
// took 270 ns and 1, because it reads randomness for 64 ids at once and writes both
// ids into one string. The whole path of a validated call has some 20 allocations.
package id
