// Package toolerror brings the failures of what tools are made of to the callers of tools.
package toolerror
