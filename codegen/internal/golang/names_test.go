package golang

import "testing"

func TestPackageName(t *testing.T) {
	for id, want := range map[string]string{
		"pr-reviewer": "prreviewer", "a.b_c": "abc", "3d": "agent3d", "": "agent",
		"main": "mainagent", "internal": "internalagent", "vendor": "vendoragent", "testdata": "testdataagent",
		"context": "contextagent", "typed": "typedagent", "json": "jsonagent",
		"func": "funcagent", "type": "typeagent", // keywords
		"init": "initagent", "documentation": "documentationagent", "select": "selectagent", "con": "conagent", "com1": "com1agent",
		"error": "erroragent", "string": "stringagent", "nil": "nilagent", "logging": "logging", "x.d.y": "xdy",
		"load-test": "loadtestagent", // load_test would be a package of tests
	} {
		if got := packageName(id); got != want {
			t.Errorf("packageName(%q) = %s, want %s", id, got, want)
		}
	}
}

func TestFieldName(t *testing.T) {
	for name, want := range map[string]string{
		"a": "A", "prUrl": "PRURL", "pr_url": "PRURL", "url": "URL", "userId": "UserID", "identity": "Identity",
		"HTTPServer": "HTTPServer", "a-b c": "ABC", "2fa": "X2fa", "日本": "X", "": "X",
	} {
		if got := fieldName(name); got != want {
			t.Errorf("fieldName(%q) = %s, want %s", name, got, want)
		}
	}
}

func TestEnumWord(t *testing.T) {
	for value, want := range map[string]string{
		"low": "Low", "a b": "AB", "inProgress": "InProgress", "": "Empty", "*/": "Value", "-1": "Minus1", "1.5": "15", "-": "Value",
	} {
		if got := enumWord(value); got != want {
			t.Errorf("enumWord(%q) = %s, want %s", value, got, want)
		}
	}
}
