// Package smtptest runs mail servers for tests: real ones, with TLS and passwords, that
// keep what they get.
package smtptest
