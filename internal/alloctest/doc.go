// Package alloctest counts what code allocates, for tests: whatever else the process does
// meanwhile.
package alloctest
