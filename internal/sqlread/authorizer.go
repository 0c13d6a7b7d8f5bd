package sqlread

import (
	"slices"
	"strings"

	"modernc.org/sqlite"
)

// authorize decides about one thing that a statement would do, while SQLite compiles it.
// Only what reads is allowed; every action that a later SQLite may invent is not.
func authorize(action sqlite.AuthorizerActionCode, arg1, arg2, _, _ string) sqlite.AuthorizerReturnCode {
	switch action {
	case sqlite.AuthSelect, sqlite.AuthRead, sqlite.AuthRecursive:
		return sqlite.AuthorizerOK
	case sqlite.AuthFunction:
		// Both are off unless a program turns them on. They would run code that the query names.
		if name := strings.ToLower(arg2); name == "load_extension" || name == "fts3_tokenizer" {
			return sqlite.AuthorizerDeny
		}
		return sqlite.AuthorizerOK
	case sqlite.AuthPragma:
		// What describes tables, which queries read as pragma_table_info('t'), and what
		// full-text search asks for itself. None of them changes anything.
		if slices.Contains([]string{"table_info", "table_xinfo", "index_list", "index_info", "index_xinfo", "foreign_key_list", "data_version"}, strings.ToLower(arg1)) {
			return sqlite.AuthorizerOK
		}
	default:
	}
	return sqlite.AuthorizerDeny
}

// quadratic returns how long the values of a query that calls a function may be, or 0 for
// no such limit. SQLite can end a query between two steps of it, and a call of a function
// is one step: these compare each byte of one argument with those of another, so that two
// values of a mebibyte would keep trim busy for hours, whatever the query's time is.
func quadratic(function string) int {
	switch strings.ToLower(function) {
	case "trim", "ltrim", "rtrim", "unhex", "json_patch", "jsonb_patch":
		return 16 << 10
	case "instr", "replace": // a fast comparison of memory
		return 512 << 10
	}
	return 0
}
