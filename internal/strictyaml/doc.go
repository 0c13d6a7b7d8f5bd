// Package strictyaml reads configuration files without guessing.
//
// A file is YAML, or JSON when its name ends in .json; both become the same
// tree. The tree is read through [Value] and [Object], which record a [Fault]
// for every unknown key, every value of the wrong type and every missing key,
// and go on. [File.Err] then returns all faults of the file at
// once, each with its line, column and JSON pointer (RFC 6901).
//
// # What YAML means here
//
// Plain scalars follow the core schema of YAML 1.2 (section 10.3.2): yes, no,
// on, off and dates are strings, 017 is seventeen. One thing is added: digits
// may be grouped with underscores (60_000). Numbers are exact at any size and
// never pass through a float. Faults, because each either has no JSON value
// or misleads a reader: .inf and .nan, keys that are not strings,
// duplicate keys, merge keys, !!binary and application tags, a second document
// in the file. Aliases are expanded within a budget, so a file cannot grow
// beyond [MaxNodes] values.
package strictyaml
