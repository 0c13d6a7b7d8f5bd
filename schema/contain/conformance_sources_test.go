package contain_test

// falseSources lists the pairs of which the source says the opposite of what is the case,
// with the reason.
func falseSources() map[string]string {
	const (
		ascii      = `the source has \w and \d match beyond ASCII, which ECMA-262 does not`
		negated    = `the source negates a part of the schema to which its own reference leads, and takes the reference for the unnegated schema`
		typed      = `the source means all values of one type, and says all values`
		content    = `the content keywords are annotations`
		format     = `format is an annotation unless asked for`
		dependency = `no object is a string or a number: both only rule the member out`
		dialect    = `draft-07 has no prefixItems`
		pattern    = `the two disagree about ^a`
		pattern2   = `patterns are not anchored: [a-z]* matches everywhere`
		control    = `\cC is a control character, and no other name is allowed`
		cautious   = `true, but beyond what the source can prove`
	)
	return map[string]string{
		"apicurio/104-String:_contentMediaType_3<":                                        content,
		"apicurio/104-String:_contentMediaType_3>":                                        content,
		"apicurio/126-Conditional:_else<":                                                 pattern2,
		"apicurio/14-String:_format_2<":                                                   format,
		"confluent/diff-schema-examples-51":                                               dependency,
		"containment-suite/draft2019-09/nonvalid/recursiveRef#7>":                         negated,
		"containment-suite/draft2019-09/nonvalid/ref#14>":                                 negated,
		"containment-suite/draft2019-09/unions/optional/unicode#4>":                       ascii,
		"containment-suite/draft2019-09/universal/recursiveRef#3<":                        negated,
		"containment-suite/draft2019-09/universal/ref#12<":                                negated,
		"containment-suite/draft2019-09/universal/unevaluatedItems#15<":                   typed,
		"containment-suite/draft2019-09/unsatisfiable/recursiveRef#3>":                    negated,
		"containment-suite/draft2019-09/unsatisfiable/ref#12>":                            negated,
		"containment-suite/draft2020-12/nonvalid/optional/unicode#10>":                    ascii,
		"containment-suite/draft2020-12/nonvalid/optional/unicode#6>":                     ascii,
		"containment-suite/draft2020-12/unions/optional/unicode#3>":                       ascii,
		"containment-suite/draft2020-12/universal/dynamicRef#3<":                          negated,
		"containment-suite/draft2020-12/universal/unevaluatedItems#15<":                   typed,
		"containment-suite/draft2020-12/universal/unevaluatedProperties#19<":              typed,
		"containment-suite/draft4/nonvalid/optional/unicode#10>":                          ascii,
		"containment-suite/draft4/unions/optional/unicode#4>":                             ascii,
		"containment-suite/draft4/universal/items#3<":                                     typed,
		"containment-suite/draft4/valid/optional/unicode#10>":                             ascii,
		"containment-suite/draft7/nonvalid/ref#16>":                                       negated,
		"containment-suite/draft7/unions/optional/unicode#3>":                             ascii,
		"containment-suite/draft7/unions/optional/unicode#4>":                             ascii,
		"containment-suite/draft7/unsatisfiable/ref#13>":                                  negated,
		"containment-suite/draft7/valid/optional/content#5>":                              content,
		"containment-suite/draft7/valid/optional/content#8>":                              content,
		"containment-suite/draft7/valid/optional/unicode#10>":                             ascii,
		"containment-suite/draft7/valid/optional/unicode#18>":                             ascii,
		"jsoncompat/rs/integral_number_lattice_gap_is_not_used_for_number_oneof#1":        cautious,
		"jsoncompat/rs/unique_number_multiple_domain_is_not_treated_as_finite_capacity#1": cautious,
		"jsoncompat/unsupported_subset_pattern_properties_additional_fallback<":           control,
		"redpanda/case-100": pattern,
		"redpanda/case-26":  dependency,
		"redpanda/case-98":  dialect,
	}
}
