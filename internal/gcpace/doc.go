// Package gcpace sets how often an agent's process collects garbage, and that of a command that
// makes a lot of it, as a verification does. What measures an agent in a process of its own sets
// the same.
package gcpace
