// Package callapi is what the two HTTP APIs of an agent share: that of its operator
// (package control) and that of its skills (package skillapi).
//
// Both make calls with POST /v1/request and wait for their results with
// GET /v1/results/{id}, in the same words, and have the same errors. Who may do so, and
// as a part of which call, each API decides by itself.
package callapi
