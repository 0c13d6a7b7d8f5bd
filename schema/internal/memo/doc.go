// Package memo remembers what a pass over a payload found out about its values, so
// that no value is judged twice by one schema.
package memo
