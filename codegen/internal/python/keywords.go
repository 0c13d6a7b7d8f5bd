package python

import "strings"

// keywords returns the words that Python 3.11 reserves; match, case and type
// are names as well. No parameter, method or module can be called so.
func keywords() []string {
	return strings.Fields("and as assert async await break class continue def del elif else except finally for from " +
		"global if import in is lambda nonlocal not or pass raise return try while with yield")
}

// typeWords returns the names that annotations use. A class member of that name
// would hide the type from the members below it.
func typeWords() []string {
	return strings.Fields("str int float bool list dict None Any Literal Never NotRequired Union Result Ok True False")
}
