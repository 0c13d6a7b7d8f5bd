// Package layout holds the tests that keep the tree in shape: which package may
// import which, that every package says what it is for, and that the README
// tells the truth.
package layout
