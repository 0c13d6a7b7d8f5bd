// Package files is the capability files: to list, read and search the folders that the
// agent's file names, and to write to them where it says so.
//
// Package internal/rootfs does the work and says what it guards against.
package files
