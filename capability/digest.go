package capability

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

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
	Name   string `json:"name"`
	Input  string `json:"input,omitempty"`
	Output string `json:"output,omitempty"`
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
			if contract.Digest, err = schemaDigest(contract.Source); err != nil {
				return fmt.Errorf("capability %q: %w", c.Name, err)
			}
		}
		seen := observable{Name: c.Name}
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
	seen := observable{Name: name}
	var err error
	if t.InputSchema != nil {
		if seen.Input, err = schemaDigest(t.InputSchema); err != nil {
			return "", err
		}
	}
	if t.OutputSchema != nil {
		if seen.Output, err = schemaDigest(t.OutputSchema); err != nil {
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

// schemaDigest returns the digest of a schema's assertions.
func schemaDigest(source []byte) (string, error) {
	bare, err := withoutAnnotations(source)
	if err != nil {
		return "", err
	}
	canonical, err := jcs.Append(nil, bare)
	if err != nil {
		return "", err
	}
	return sum(canonical), nil
}

// withoutAnnotations removes the annotations of a schema and of the schemas
// inside it. It descends into schemas only: properties, constants and enum
// values that happen to be called like an annotation stay. Values stay raw
// JSON, so numbers keep every digit.
func withoutAnnotations(source []byte) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	if len(source) == 0 || source[0] != '{' {
		return source, nil // a boolean schema
	}
	if err := json.Unmarshal(source, &members); err != nil {
		return nil, err
	}
	for name, value := range members {
		if annotation(name) {
			delete(members, name)
			continue
		}
		bare, err := bareKeyword(name, value)
		if err != nil {
			return nil, err
		}
		members[name] = bare
	}
	return json.Marshal(members)
}

// bareKeyword removes the annotations of the schemas inside one keyword's
// value.
func bareKeyword(name string, value json.RawMessage) (json.RawMessage, error) {
	switch name {
	case "items", "not", "additionalProperties":
		return withoutAnnotations(value)
	case "properties", "definitions":
		var members map[string]json.RawMessage
		if err := json.Unmarshal(value, &members); err != nil {
			return value, nil // malformed: loaded for inspection only
		}
		for k, v := range members {
			bare, err := withoutAnnotations(v)
			if err != nil {
				return nil, err
			}
			members[k] = bare
		}
		return json.Marshal(members)
	case "oneOf", "anyOf", "allOf":
		var list []json.RawMessage
		if err := json.Unmarshal(value, &list); err != nil {
			return value, nil
		}
		for i, v := range list {
			bare, err := withoutAnnotations(v)
			if err != nil {
				return nil, err
			}
			list[i] = bare
		}
		return json.Marshal(list)
	}
	return value, nil
}
