package mcpclient

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/internal/jcs"
	"github.com/agentd/agentd/schema"
)

// A Contract is what a server promises of a tool, in the bytes in which it did. What else a
// server says of a tool, such as its title, is not part of it and is not used.
type Contract struct {
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  json.RawMessage `json:"annotations,omitempty"`
}

// maxContractDepth bounds the nesting of a tool as a server lists it.
const maxContractDepth = 128

// parseContract reads a tool of a server's list. Names of members count exactly, and once:
// a reader that takes another spelling, or the last of two, would see another contract.
func parseContract(raw json.RawMessage) (Contract, error) {
	if err := ijson.Check(raw, maxContractDepth); err != nil {
		return Contract{}, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return Contract{}, errors.New("it is not an object")
	}
	var c Contract
	if err := json.Unmarshal(members["name"], &c.Name); err != nil || c.Name == "" {
		return Contract{}, errors.New("it has no name")
	}
	if d := members["description"]; d != nil {
		if err := json.Unmarshal(d, &c.Description); err != nil {
			return Contract{}, fmt.Errorf("the description of %q is not a text", c.Name)
		}
	}
	c.InputSchema = present(members["inputSchema"])
	c.OutputSchema = present(members["outputSchema"])
	c.Annotations = present(members["annotations"])
	if c.InputSchema == nil {
		return Contract{}, fmt.Errorf("%q has no input schema", c.Name)
	}
	return c, nil
}

// present is nil for a member that is null.
func present(raw json.RawMessage) json.RawMessage {
	if ijson.IsAbsent(raw) {
		return nil
	}
	return raw
}

// Digest is the pin of a contract: it names its canonical form (RFC 8785), so that white
// space and the order of members count for nothing. It fails for one that is not I-JSON.
func (c Contract) Digest() (string, error) {
	form := map[string]json.RawMessage{"inputSchema": c.InputSchema}
	if c.OutputSchema != nil {
		form["outputSchema"] = c.OutputSchema
	}
	if c.Annotations != nil {
		form["annotations"] = c.Annotations
	}
	for name, text := range map[string]string{"name": c.Name, "description": c.Description} {
		form[name] = ijson.AppendQuoted(nil, text)
	}
	canonical, err := jcs.Marshal(form)
	if err != nil {
		return "", fmt.Errorf("the contract of %q: %w", c.Name, err)
	}
	sum := sha256.Sum256(canonical)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// Compile compiles the schemas of a contract, in the full profile of package schema. out is
// nil where the contract has no output schema.
func (c Contract) Compile() (in, out *schema.Schema, err error) {
	full := schema.CompileOptions{Profile: schema.ProfileFull}
	if in, err = schema.CompileWith(c.InputSchema, full); err != nil {
		return nil, nil, fmt.Errorf("the input schema of %q: %w", c.Name, err)
	}
	if c.OutputSchema == nil {
		return in, nil, nil
	}
	if out, err = schema.CompileWith(c.OutputSchema, full); err != nil {
		return nil, nil, fmt.Errorf("the output schema of %q: %w", c.Name, err)
	}
	return in, out, nil
}

// Hints are what a contract says of the effects of a call. They are the server's word, which
// whoever pinned the contract has taken.
type Hints struct {
	ReadOnly, Idempotent, Destructive, OpenWorld bool
}

// Hints returns those of the annotations, with the protocol's defaults.
func (c Contract) Hints() Hints {
	var a struct {
		ReadOnlyHint    bool  `json:"readOnlyHint"`
		IdempotentHint  bool  `json:"idempotentHint"`
		DestructiveHint *bool `json:"destructiveHint"`
		OpenWorldHint   *bool `json:"openWorldHint"`
	}
	if c.Annotations != nil && json.Unmarshal(c.Annotations, &a) != nil {
		a.ReadOnlyHint, a.IdempotentHint = false, false // what cannot be read promises nothing
	}
	h := Hints{ReadOnly: a.ReadOnlyHint, Idempotent: a.IdempotentHint || a.ReadOnlyHint, OpenWorld: true}
	h.Destructive = !h.ReadOnly && (a.DestructiveHint == nil || *a.DestructiveHint)
	if a.OpenWorldHint != nil {
		h.OpenWorld = *a.OpenWorldHint
	}
	return h
}
