package schema

import (
	"slices"

	"github.com/agentd/agentd/schema/internal/compile"
)

// Profile is how much of JSON Schema [CompileWith] takes in.
type Profile uint8

// The profiles. The subset is the zero value, and what agents declare their
// capabilities in; the full profile is for contracts that others wrote.
const (
	ProfileSubset Profile = iota
	ProfileFull
)

// Dialect is a version of JSON Schema, for [CompileOptions].
type Dialect uint8

// The dialects of the full profile. The zero value is the newest.
const (
	Dialect202012 Dialect = iota
	Dialect201909
	DialectDraft07
)

// CompileOptions choose how [CompileWith] reads a schema. All but Profile are about
// the full profile.
type CompileOptions struct {
	Profile Profile
	// Dialect is that of a document without $schema. JSON Schema leaves it open; the
	// default is 2020-12, as in OpenAPI 3.1 and MCP.
	Dialect Dialect
	// AssertFormats makes format fail strings that lack it. Otherwise it is an
	// annotation, which is the default of 2019-09 and 2020-12. Formats that no draft
	// knows never fail.
	AssertFormats bool
	// Nullable reads nullable of OpenAPI 3.0: beside type, true adds null to it.
	Nullable bool
}

// CompileWith is [Compile] by the profile and with the choices of opts. The error is a
// *[CompileError].
func CompileWith(src []byte, opts CompileOptions) (*Schema, error) {
	if opts.Profile == ProfileSubset {
		return Compile(src)
	}
	return finish(compile.Full(src, opts.full()))
}

// full returns the options as the compiler of the full profile takes them.
func (o CompileOptions) full() compile.Options {
	return compile.Options{Dialect: compile.Dialect(o.Dialect), AssertFormats: o.AssertFormats, Nullable: o.Nullable}
}

// Profile returns the profile by which s was compiled.
func (s *Schema) Profile() Profile {
	if s.form.Full {
		return ProfileFull
	}
	return ProfileSubset
}

// Remark is something in a schema that its author may not have meant, but that is no
// reason to refuse it.
type Remark struct {
	Pointer string // where it stands, as an RFC 6901 pointer into the schema
	Message string // what is odd
}

// Remarks lists what is odd about s: keywords that its dialect does not know and thus
// ignores, and values listed twice. Only the full profile has any, because the subset
// refuses these. At most a hundred are listed.
func (s *Schema) Remarks() []Remark {
	all := make([]Remark, 0, len(s.form.Remarks))
	for _, r := range s.form.Remarks {
		all = append(all, Remark(r))
	}
	return slices.Clip(all)
}
