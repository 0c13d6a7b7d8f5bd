// Package golang writes a client as one Go package: types that decode strictly,
// a client and the registration of a server. It runs on package codegen/typed.
package golang
