package capability

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/agentd/agentd/internal/jcs"
)

// annotation reports whether a keyword of a schema asserts nothing about a
// value. $id and $schema are not of the subset, but a document loaded for
// inspection may have them.
func annotation(keyword string) bool {
	switch keyword {
	case "title", "description", "default", "examples", "$id", "$schema":
		return true
	}
	return false
}

// observable is what a digest of a capability covers. Its keys are part of the
// digest's definition: a change of them changes every digest in the field.
type observable struct {
	Name   string `json:"name"`
	Input  string `json:"input,omitempty"`
	Output string `json:"output,omitempty"`
}

// computeDigests fills in the digests of contracts, capabilities and document,
// each from those below it.
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

// digestOf is sha256:<hex> over the canonical JSON of v.
func digestOf(v any) (string, error) {
	canonical, err := jcs.Marshal(v)
	if err != nil {
		return "", err
	}
	return sum(canonical), nil
}

// sum names its algorithm, so that another one can follow it.
func sum(canonical []byte) string {
	hash := sha256.Sum256(canonical)
	return "sha256:" + hex.EncodeToString(hash[:])
}

// schemaDigest is the digest of a schema's assertions.
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

// withoutAnnotations drops the annotations of a schema and of the schemas in
// it. Property names, constants and enumerations that look like annotations
// are left alone, and so are numbers, to the last digit.
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

// bareKeyword strips the schemas inside one keyword's value.
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
