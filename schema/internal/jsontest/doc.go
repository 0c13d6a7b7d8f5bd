// Package jsontest draws random JSON values and spellings of them for tests.
package jsontest
