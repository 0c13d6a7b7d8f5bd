// Package eventually lets a test wait for what no event announces: a count of another
// goroutine, a file of another process, the state of a broker.
//
// It looks again and again. Where there is an event, a channel or a bubble of
// testing/synctest, a test waits for that instead.
package eventually
