// Package modeltest makes models for the tests of the packages that read them.
package modeltest
