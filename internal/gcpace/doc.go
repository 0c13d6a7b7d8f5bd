// Package gcpace sets how often an agent's process collects garbage. What measures an agent in
// a process of its own sets the same.
package gcpace
