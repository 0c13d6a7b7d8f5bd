// Package decimal compares JSON numbers exactly, at any size and without allocating.
package decimal
