// Package logtest keeps what a test's subject logs.
package logtest
