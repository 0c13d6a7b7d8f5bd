// Package tlstest makes certificates for tests of servers that speak TLS.
package tlstest
