// Package clitest sets up what the tests of the command groups need: an
// environment with captured output, a fleet in a folder of its own, and the
// agents of that fleet running in the test's process.
package clitest
