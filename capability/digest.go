package capability

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/internal/jcs"
)

// annotation reports whether a keyword asserts nothing about a value. The
// keywords $id and $schema are not in the subset, but a document that is
// loaded for inspection may have them.
func annotation(keyword string) bool {
	switch keyword {
	case "title", "description", "default", "examples", "$id", "$schema":
		return true
	}
	return false
}

// observable is the content that a capability's digest covers. Its JSON keys
// are part of the definition: changing one changes every digest in the field.
type observable struct {
	Name    string        `json:"name"`
	Input   string        `json:"input,omitempty"`
	Output  string        `json:"output,omitempty"`
	Profile SchemaProfile `json:"schemaProfile,omitempty"`
}

// computeDigests fills in the digests of contracts, capabilities and the
// document. Each is computed from those below it, so a digest that differs
// leads to the contract that changed.
func (d *Document) computeDigests() error {
	digests := make(map[string]string, len(d.Capabilities))
	for _, c := range d.Capabilities {
		for _, contract := range []*Contract{c.Input, c.Output} {
			if contract == nil {
				continue
			}
			var err error
			if contract.Digest, err = schemaDigest(contract.Source, c.SchemaProfile); err != nil {
				return fmt.Errorf("capability %q: %w", c.Name, err)
			}
		}
		seen := observable{Name: c.Name, Profile: c.SchemaProfile}
		if c.Input != nil {
			seen.Input = c.Input.Digest
		}
		if c.Output != nil {
			seen.Output = c.Output.Digest
		}
		digest, err := digestOf(seen)
		if err != nil {
			return fmt.Errorf("capability %q: %w", c.Name, err)
		}
		c.Digest = digest
		digests[c.Name] = digest
	}
	digest, err := digestOf(digests)
	d.digest = digest
	return err
}

// ContractDigest returns the digest of what t publishes for the capability called
// name, computed here: Digest is the publisher's own word.
func (t ToolSchema) ContractDigest(name string) (string, error) {
	seen := observable{Name: name, Profile: t.SchemaProfile}
	var err error
	if t.InputSchema != nil {
		if seen.Input, err = schemaDigest(t.InputSchema, t.SchemaProfile); err != nil {
			return "", err
		}
	}
	if t.OutputSchema != nil {
		if seen.Output, err = schemaDigest(t.OutputSchema, t.SchemaProfile); err != nil {
			return "", err
		}
	}
	return digestOf(seen)
}

// ContractsDigest returns the digest of all entries together, as [Document.Digest]
// does, computed here. Entries that cannot be used are left out.
func (p *Published) ContractsDigest() (string, error) {
	digests := make(map[string]string, len(p.ToolSchemas))
	for name, t := range p.ToolSchemas {
		if t.Fault != nil {
			continue
		}
		digest, err := t.ContractDigest(name)
		if err != nil {
			return "", err
		}
		digests[name] = digest
	}
	return digestOf(digests)
}

// digestOf returns the digest of v's canonical JSON (RFC 8785).
func digestOf(v any) (string, error) {
	canonical, err := jcs.Marshal(v)
	if err != nil {
		return "", err
	}
	return sum(canonical), nil
}

// sum returns sha256:<hex>. The prefix names the algorithm, so that another
// one can replace it.
func sum(canonical []byte) string {
	hash := sha256.Sum256(canonical)
	return "sha256:" + hex.EncodeToString(hash[:])
}

// A DigestError reports why a schema has no digest: it is not one strict JSON value, or
// arrays and objects nest deeper in it than [MaxDigestDepth].
type DigestError struct{ Err error }

func (e *DigestError) Error() string { return "a schema without digest: " + e.Err.Error() }

// Unwrap returns the fault of syntax.
func (e *DigestError) Unwrap() error { return e.Err }

// MaxDigestDepth is how deep the arrays and objects of a schema may nest if it is to have a
// digest. It is the bound of schemas that compile.
const MaxDigestDepth = jcs.MaxDepth

// schemaDigest returns the digest of a schema: of its assertions, or by the full profile of
// all of it, where any part may be what a reference leads to. The error is a
// *[DigestError].
func schemaDigest(source []byte, profile SchemaProfile) (string, error) {
	if err := ijson.Check(source, MaxDigestDepth); err != nil {
		return "", &DigestError{err}
	}
	var bare []byte
	if profile == ProfileSubset {
		bare, _ = appendBare(nil, source, ijson.SkipSpace(source, 0))
	} else {
		bare = withDialect(source)
	}
	canonical, err := jcs.Append(nil, bare)
	if err != nil {
		return "", &DigestError{err}
	}
	return sum(canonical), nil
}

// appendBare appends the schema at i without its annotations and those of the schemas
// inside, and returns where it ends. It descends into schemas only: properties, constants
// and enum values that happen to be called like an annotation stay. Values stay as they
// are written, so numbers keep every digit. src has been checked. The work is in
// proportion to its length, however deep it nests: src comes from peers.
func appendBare(dst, src []byte, i int) (_ []byte, end int) {
	return appendMembers(dst, src, i, func(dst []byte, name string, i int) (_ []byte, end int, keep bool) {
		if annotation(name) {
			return dst, ijson.SkipValid(src, i), false
		}
		dst, end = appendBareKeyword(dst, src, name, i)
		return dst, end, true
	})
}

// appendBareKeyword appends the value at i of one keyword without the annotations of the
// schemas inside.
func appendBareKeyword(dst, src []byte, name string, i int) (_ []byte, end int) {
	switch name {
	case "items", "not", "additionalProperties":
		return appendBare(dst, src, i)
	case "properties", "definitions":
		return appendMembers(dst, src, i, func(dst []byte, _ string, i int) ([]byte, int, bool) {
			dst, end := appendBare(dst, src, i)
			return dst, end, true
		})
	case "oneOf", "anyOf", "allOf":
		if src[i] != '[' {
			break // malformed: loaded for inspection only
		}
		dst = append(dst, '[')
		i, empty := ijson.Enter(src, i)
		for more := !empty; more; {
			dst, i = appendBare(dst, src, i)
			i, more, _ = ijson.Next(src, i, ']')
			if more {
				dst = append(dst, ',')
			}
		}
		return append(dst, ']'), i
	}
	end = ijson.SkipValid(src, i)
	return append(dst, src[i:end]...), end
}

// appendMembers appends the object at i, with each value as member appends it, which also
// says whether the member is kept, and returns where the object ends. Any other value is
// appended as it is: a boolean schema, or a malformed keyword.
func appendMembers(dst, src []byte, i int, member func(dst []byte, name string, i int) (_ []byte, end int, keep bool)) (_ []byte, end int) {
	if src[i] != '{' {
		end = ijson.SkipValid(src, i)
		return append(dst, src[i:end]...), end
	}
	dst = append(dst, '{')
	first := true
	i, empty := ijson.Enter(src, i)
	for more := !empty; more; {
		from := len(dst)
		if !first {
			dst = append(dst, ',')
		}
		nameEnd, _, value, _ := ijson.ScanName(src, i)
		dst = append(append(dst, src[i:nameEnd]...), ':')
		name := string(ijson.AppendUnquoted(nil, src[i+1:nameEnd-1]))
		var keep bool
		dst, i, keep = member(dst, name, value)
		if keep {
			first = false
		} else {
			dst = dst[:from]
		}
		i, more, _ = ijson.Next(src, i, '}')
	}
	return append(dst, '}'), i
}
