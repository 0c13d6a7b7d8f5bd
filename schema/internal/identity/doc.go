// Package identity numbers JSON values, so that equal values have equal numbers
// however they are written. The keywords const, enum and uniqueItems rest on it.
package identity
