// Package oauthtest runs authorization servers for tests, and resources that they protect: small
// and real ones, which refuse what they should.
package oauthtest
