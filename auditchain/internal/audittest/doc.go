// Package audittest helps the tests of the packages that make up an audit log:
// it fills real logs, damages them as an intruder would, and states what a
// verification must find. Only tests import it.
package audittest
