// Package hashtable is the one hash table of the engine: it finds small numbers by
// 64-bit hashes. What is hashed and how stays with its users, who look up names,
// values, and results.
package hashtable
