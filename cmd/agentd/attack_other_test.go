//go:build !linux

package main

// goAttack is a hostile skill, on Linux.
func goAttack() {}

// untraced runs a program that may trace no process, on Linux.
func untraced() {}
