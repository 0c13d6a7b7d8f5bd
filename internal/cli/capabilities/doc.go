// Package capabilities implements `agentd capabilities`: it shows a capability
// and checks payloads against it, lints capability files, generates typed
// clients, and compares contracts, either of two files (diff) or of the whole
// fleet with a lock file (lock, check).
package capabilities
