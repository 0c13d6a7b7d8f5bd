// Package fleet reads the files that declare a fleet: fleet.yaml at its root,
// agent.yaml of each member, and rpc-peers.yaml, which says who may call whom
// and how they are reached.
//
// [Load] reads them all, strictly, and reports the faults of every file at
// once. What it returns is resolved: environments have inherited, paths are
// absolute, each member has its peers, and each peer has its capabilities where
// a file is known for it.
//
// # Where a member's peers come from
//
// One rule, used by everything that asks: rpc-peers.yaml in the member's own
// directory if there is one, in place of any other; else the file that its
// environment names (peersRef); else rpc-peers.yaml at the fleet's root; else
// none.
//
// # Paths
//
// Paths are relative to the fleet's root, those in a peers file to that file.
// A path that is read must stay inside the root, after symbolic links are
// followed; so must every relative path. Files that only the members read
// (secrets, channels, env files) may be absolute.
//
// # Load and lint
//
// A load fails when a file cannot be understood or the fleet cannot be built
// from it. What can be built and is still suspicious, such as a peer that no
// file describes, is a [Finding] of [Fleet.Lint].
package fleet
