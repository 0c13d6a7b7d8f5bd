package capability

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/internal/strictyaml"
	"github.com/agentd/agentd/schema"
)

// A SchemaProfile is how much of JSON Schema the contracts of a capability may use, and so
// by which rules they are read. It is part of what a contract means.
type SchemaProfile string

// The profiles; see package schema.
const (
	// ProfileSubset is the draft-07 subset, in which formats are asserted.
	ProfileSubset SchemaProfile = ""
	// ProfileFull is draft-07, 2019-09 or 2020-12 as $schema says, and 2020-12 where it
	// says nothing. Formats are annotations. It is for contracts that others wrote, such
	// as those of MCP servers.
	ProfileFull SchemaProfile = "full"
)

// String returns the profile as files name it.
func (p SchemaProfile) String() string {
	if p == ProfileSubset {
		return profileWords()[0]
	}
	return string(p)
}

// profileWords are the profiles as files name them, the default first.
func profileWords() []string { return []string{"subset", string(ProfileFull)} }

// CompileOptions returns how package schema reads schemas of the profile. The error is for
// a profile that this package does not know: nothing may be taken for checked by it.
func (p SchemaProfile) CompileOptions() (schema.CompileOptions, error) {
	switch p {
	case ProfileSubset:
		return schema.CompileOptions{}, nil
	case ProfileFull:
		return schema.CompileOptions{Profile: schema.ProfileFull}, nil
	}
	return schema.CompileOptions{}, fmt.Errorf("the schema profile %.64q is not one that this agentd knows", string(p))
}

// CompileOptions returns how the capability's contracts are read.
func (c *Capability) CompileOptions() schema.CompileOptions {
	opts, _ := c.SchemaProfile.CompileOptions() // decoding has checked it
	return opts
}

// decodeProfile reads schemaProfile.
func decodeProfile(v strictyaml.Value) SchemaProfile {
	if word := v.Enum(profileWords()...); word != profileWords()[0] {
		return SchemaProfile(word)
	}
	return ProfileSubset
}

// dialect2020 is the dialect of the full profile where a schema names none.
const dialect2020 = "https://json-schema.org/draft/2020-12/schema"

// withDialect returns a schema of the full profile with $schema written out, so that
// everybody who reads it elsewhere reads the same. A release of agentd that knows the
// subset alone refuses it by that name.
func withDialect(source []byte) []byte {
	at := ijson.SkipSpace(source, 0)
	var root map[string]json.RawMessage
	if at == len(source) || source[at] != '{' || json.Unmarshal(source, &root) != nil || root["$schema"] != nil {
		return source
	}
	out := append([]byte(`{"$schema":`), ijson.AppendQuoted(nil, dialect2020)...)
	rest := bytes.TrimSpace(source[at+1:])
	if !strings.HasPrefix(string(rest), "}") {
		out = append(out, ',')
	}
	return append(out, rest...)
}
