// Package jsonptr writes JSON pointers (RFC 6901).
package jsonptr
