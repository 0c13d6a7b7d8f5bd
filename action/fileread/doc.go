// Package fileread is the action file-read: the content of a file below the folders that
// the operator names.
//
// Package internal/rootfs does the work and says what it guards against.
package fileread
