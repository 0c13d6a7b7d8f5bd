package python_test

import (
	"strings"
	"testing"

	"github.com/agentd/agentd/codegen/internal/modeltest"
	"github.com/agentd/agentd/codegen/internal/python"
)

func TestPath(t *testing.T) {
	for id, want := range map[string]string{
		"pr-reviewer": "pr_reviewer.py", "a.b_c": "a_b_c.py", "3d": "agent_3d.py",
		"import": "import_.py", "async": "async_.py", "yield": "yield_.py", // keywords
		"asyncio": "asyncio_.py", "json": "json_.py", "os": "os_.py", "socket": "socket_.py", "typing": "typing_.py", // imports
		// what those import in turn, or anybody else does
		"logging": "logging_.py", "select": "select_.py", "http": "http_.py", "sqlite3": "sqlite3_.py", "py-compile": "py_compile_.py",
		"agentd": "agentd_.py", "typing.extensions": "typing_extensions_.py", "conftest": "conftest_.py",
		"con": "con_.py", "com1": "com1_.py", "com10": "com10.py", // devices of Windows
		"init": "init.py", "documentation": "documentation.py", "main": "main.py", "x.d.y": "x_d_y.py",
		"match": "match.py",
	} {
		if got := python.Path(id); got != want {
			t.Errorf("Path(%q) = %s, want %s", id, got, want)
		}
	}
}

// A method is named like its capability, in the manner of Python, and not like
// a keyword, another method, or a type that its own signature needs.
func TestMethodNames(t *testing.T) {
	module := string(python.Standalone(modeltest.Capabilities(t, `{"name":"reviewPr"},{"name":"review-pr"},{"name":"class"},{"name":"str"},
		{"name":"2fa"},{"name":"X"}`)))
	for _, method := range []string{"review_pr_0083", "review_pr_ef99", "class_", "str_", "call_2fa", "x"} {
		for _, def := range []string{"    def " + method + "(\n", "    async def " + method + "(\n"} {
			if strings.Count(module, def) != 1 {
				t.Errorf("%d times %q, want once", strings.Count(module, def), def)
			}
		}
	}
}

// A member whose name a class body cannot hold, or that would hide a type from
// the members below it, makes the class a call.
func TestMemberNames(t *testing.T) {
	for name, class := range map[string]bool{
		"a": true, "prUrl": true, "_a": true, "match": true, "list_": true,
		"a-b": false, "日本": false, "1a": false, "class": false, "__private": false, "str": false, "NotRequired": false,
		"XRequest": false, "theResponse": false,
	} {
		got := declarations(t, `{"type":"object","properties":{"`+name+`":{}},"required":["`+name+`"],"additionalProperties":false}`)
		want := "XRequest = TypedDict(\"XRequest\", {\n    \"" + name + "\": Any,\n})"
		if class {
			want = "class XRequest(TypedDict):\n    " + name + ": Any"
		}
		if got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	}
}

// No text of a schema gets out of its comment or string.
func TestTextStaysInItsPlace(t *testing.T) {
	const evil = `\"\"\"\nimport os\n\u202e\\` // as JSON
	module := declarations(t, `{"type":"object","description":"`+evil+`","additionalProperties":false,
		"properties":{"a":{"description":"`+evil+`","enum":["`+evil+`"]}}}`)
	want := `class XRequest(TypedDict):
    "\"\"\"\nimport os\n\\"

    #: """
    #: import os
    #: \
    a: NotRequired[Literal["\"\"\"\nimport os\n\u202e\\"]]`
	if module != want {
		t.Errorf("got\n%s\nwant\n%s", module, want)
	}
}
