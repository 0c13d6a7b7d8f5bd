package contain

import "strings"

// Rule names a kind of difference between two schemas. The names are stable:
// SARIF reports, baselines and configuration refer to them, so that a rule is
// never renamed and never reused for another difference.
type Rule string

// The rules. "Narrowed" means that the second schema accepts less than the
// first by the keywords in question, "widened" that it accepts more, and
// "changed" that it is neither or not known.
const (
	RuleTypeNarrowed Rule = "type-narrowed" // type lists fewer types
	RuleTypeWidened  Rule = "type-widened"  // type lists more types
	RuleTypeChanged  Rule = "type-changed"  // type lists other types

	RuleEnumNarrowed Rule = "enum-narrowed" // enum or const name fewer values
	RuleEnumWidened  Rule = "enum-widened"  // enum or const name more values, or are gone
	RuleEnumChanged  Rule = "enum-changed"  // enum or const name other values

	RuleRangeNarrowed Rule = "range-narrowed" // minimum, maximum and the exclusive ones admit fewer numbers
	RuleRangeWidened  Rule = "range-widened"  // they admit more numbers
	RuleRangeChanged  Rule = "range-changed"  // they admit other numbers

	RuleLengthNarrowed Rule = "length-narrowed" // minLength and maxLength admit fewer lengths
	RuleLengthWidened  Rule = "length-widened"  // they admit more lengths
	RuleLengthChanged  Rule = "length-changed"  // they admit other lengths

	RulePatternAdded   Rule = "pattern-added"   // pattern is new
	RulePatternRemoved Rule = "pattern-removed" // pattern is gone
	RulePatternChanged Rule = "pattern-changed" // pattern matches other strings

	RuleFormatAdded   Rule = "format-added"   // format is new
	RuleFormatRemoved Rule = "format-removed" // format is gone
	RuleFormatChanged Rule = "format-changed" // format is another

	RuleCountNarrowed Rule = "count-narrowed" // minItems and maxItems admit fewer sizes
	RuleCountWidened  Rule = "count-widened"  // they admit more sizes
	RuleCountChanged  Rule = "count-changed"  // they admit other sizes

	RuleUniqueAdded   Rule = "unique-added"   // uniqueItems is new
	RuleUniqueRemoved Rule = "unique-removed" // uniqueItems is gone

	RuleItemsNarrowed Rule = "items-narrowed" // items is new
	RuleItemsWidened  Rule = "items-widened"  // items is gone

	RuleRequiredAdded   Rule = "required-added"   // a member must exist that could be absent
	RuleRequiredRemoved Rule = "required-removed" // a member may be absent that had to exist

	RulePropertyAdded   Rule = "property-added"   // properties declares a name that it did not
	RulePropertyRemoved Rule = "property-removed" // properties no longer declares a name
	RulePropertyClosed  Rule = "property-closed"  // additionalProperties has become false
	RulePropertyOpened  Rule = "property-opened"  // additionalProperties is no longer false

	RuleAdditionalNarrowed Rule = "additional-narrowed" // additionalProperties is a schema now, where anything went
	RuleAdditionalWidened  Rule = "additional-widened"  // anything goes, where additionalProperties was a schema

	RuleBranchAdded   Rule = "branch-added"   // oneOf or anyOf has a new branch
	RuleBranchRemoved Rule = "branch-removed" // oneOf or anyOf has lost a branch
	RuleUnionAdded    Rule = "union-added"    // oneOf or anyOf is new
	RuleUnionRemoved  Rule = "union-removed"  // oneOf or anyOf is gone
	RuleUnionChanged  Rule = "union-changed"  // several unions, or one of another kind

	RuleNotAdded   Rule = "not-added"   // not is new
	RuleNotRemoved Rule = "not-removed" // not is gone
	RuleNotChanged Rule = "not-changed" // not is another

	// RuleSchemaChanged is for a difference that no other rule explains; its
	// witness shows it.
	RuleSchemaChanged Rule = "schema-changed"
	// RuleUndecided says that containment could not be decided, which counts
	// as breaking.
	RuleUndecided Rule = "undecided"
)

// Direction is how the set of accepted values changes by one difference alone.
// It is not the same as breaking: a narrowed part may be out of reach because
// another keyword rejects the values anyway, and a widened branch of oneOf can
// make values match twice.
type Direction string

// The directions.
const (
	Narrowed Direction = "narrowed" // the second schema accepts less
	Widened  Direction = "widened"  // the second schema accepts more
	Changed  Direction = "changed"  // neither, or not known
)

// opposite is the rule for the same difference, read the other way round.
func (r Rule) opposite() Rule {
	for _, ends := range [...][2]string{
		{"-narrowed", "-widened"}, {"-added", "-removed"}, {"-closed", "-opened"},
	} {
		if name, ok := strings.CutSuffix(string(r), ends[0]); ok {
			return Rule(name + ends[1])
		}
		if name, ok := strings.CutSuffix(string(r), ends[1]); ok {
			return Rule(name + ends[0])
		}
	}
	return r
}

// opposite is the direction the other way round.
func (d Direction) opposite() Direction {
	switch d {
	case Narrowed:
		return Widened
	case Widened:
		return Narrowed
	}
	return d
}
