//go:build !linux

package main

// goAttack is a hostile skill, on Linux.
func goAttack() {}
