// Package merkle grows an RFC 6962 Merkle tree of which only the right edge is
// in memory. It knows nothing of databases: package store keeps and reads the
// nodes.
package merkle
