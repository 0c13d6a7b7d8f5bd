// Package capability is an agent's callable surface: the file
// capabilities.yaml, the contracts that its schemas make, and the form in which
// an agent publishes them to its callers.
//
// [Load] reads a file strictly: an unknown key, a schema that cannot be
// enforced, a name that two capabilities share, each fails the load, and every
// fault is reported at its line and column. A capability without a schema has
// no [Contract] on that side, and no validator ever runs there.
//
// # Profiles
//
// Contracts are written in the subset of JSON Schema that package schema describes. With
// `schemaProfile: full` both contracts of a capability may use all of it, as the schemas of
// MCP servers do. The profile belongs to what a contract means: it is published, and it is
// under the digest, so that a peer that does not know it cannot take the contract for
// another. `result: mcp` says that responses are results of tools, and `asks` what such a
// capability may ask the client of a call for: it extends both contracts ([Ask]).
//
// # Contracts and engines
//
// A [Contract] checks payloads with a [Validator]: the schema itself, compiled
// by package schema, unless [Document.WithEngine] puts another [Engine] in its
// place. [LoadOptions] also take a [SecondOpinion] on every schema.
//
// Both are seams. By itself this package judges by package schema alone and
// imports no other engine. Package capability/gojsonschema fills the seams, and
// daemon.LoadOptions plugs it in for the agents that agentd runs.
//
// # Digests
//
// A contract's digest is SHA-256 over the canonical form (RFC 8785) of its
// schema without the keywords that assert nothing: title, description, default,
// examples, $id, $schema. Rewording a description therefore leaves it alone.
// A contract of the full profile has a digest over all of its schema, annotations and
// the dialect included: any part of it may be what a reference leads to, and it is
// others' text, whose every change should be seen.
//
// A capability's digest covers its name, its profile and its contracts, a document's digest
// the digests of its capabilities. Timeouts, retry rules and the like are
// published beside the digests, not under them: a caller's payload stays valid
// when they change.
//
// # Carried, not enforced here
//
// The optional keys delivery, progress, id, version, category, permissions, rateLimit,
// retryPolicy, concurrency, cost and callers are parsed and validated into
// fields of [Capability]. This package only carries them; packages policy and
// rpc give them meaning. They may be written in camelCase or snake_case.
package capability
