// Package filelock lets one process at a time have a file for itself, and says
// to others who has it.
package filelock
