package python_test

import (
	"strings"
	"testing"

	"github.com/agentd/agentd/codegen/internal/modeltest"
	"github.com/agentd/agentd/codegen/internal/python"
)

// declarations is what a module declares for the schema of a request, without
// the words around a single type.
func declarations(t *testing.T, schema string) string {
	t.Helper()
	module := string(python.Standalone(modeltest.API(t, schema)))
	_, types, _ := strings.Cut(module, "\nADDRESS = \"agent://agent\"\n")
	types, _, ok := strings.Cut(types, "XResponse")
	if !ok {
		t.Fatalf("no types in\n%s", module)
	}
	types = strings.Trim(types, "\n")
	if one, ok := strings.CutPrefix(types, "XRequest: TypeAlias = "); ok && !strings.Contains(types, "\n") {
		return one
	}
	return types
}

func TestTypes(t *testing.T) {
	for _, tt := range []struct{ name, schema, want string }{
		{"string", `{"type":"string"}`, `str`},
		{"integer", `{"type":"integer"}`, `int`},
		{"integer beyond 64 bits", `{"type":"integer","minimum":-1e30}`, "#: At least -1e30.\nXRequest: TypeAlias = int"},
		{"number", `{"type":"number"}`, `float`},
		{"boolean", `{"type":"boolean"}`, `bool`},
		{"null", `{"type":"null"}`, `None`},
		{"anything", `{}`, `Any`},
		{"nothing", `{"type":"object","properties":{"a":false},"required":["a"]}`, `Never`},
		{"string or null", `{"type":["string","null"]}`, `Union[str, None]`},
		{"string or integer", `{"type":["string","integer"]}`, `Union[str, int]`},
		{"array", `{"type":"array","items":{"type":"integer"}}`, `list[int]`},
		{"array of anything", `{"type":"array"}`, `list[Any]`},
		{"array of unions", `{"type":"array","items":{"type":["string","boolean"]}}`, `list[Union[str, bool]]`},
		{"enum of strings", `{"enum":["low","a b",""]}`, `Literal["low", "a b", ""]`},
		{"enum of integers", `{"enum":[1,-2,9007199254740993]}`, `Literal[1, -2, 9007199254740993]`},
		{"enum of numbers", `{"enum":[0.5,2.5]}`, `float`},
		{"enum of both booleans", `{"enum":[true,false]}`, `bool`},
		{"enum of one boolean", `{"enum":[true]}`, `Literal[True]`},
		{"enum of several kinds", `{"enum":["x",7,null]}`, `Union[Literal["x"], Literal[7], None]`},
		{"const object", `{"const":{"a":[1,"two"]}}`, `class XRequest(TypedDict):
    a: list[Literal[1] | Literal["two"]]`},
		{"closed object", `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["a"],"additionalProperties":false}`, `class XRequest(TypedDict):
    a: str
    b: NotRequired[int]`},
		{"empty closed object", `{"type":"object","additionalProperties":false}`, `class XRequest(TypedDict):
    pass`},
		{"open object", `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, `class XRequest(TypedDict):
    a: str`},
		{"object of any names", `{"type":"object","additionalProperties":{"type":"integer"}}`, `dict[str, int]`},
		{"object with typed others", `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":{"type":"integer"}}`, `dict[str, Union[int, str]]`},
		{"object or null", `{"type":["object","null"],"properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`, `class XRequestObject(TypedDict):
    a: str


XRequest: TypeAlias = Union["XRequestObject", None]`},
		{"member that may be null", `{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"type":["string","null"]}},"required":["a"],"additionalProperties":false}`, `class XRequest(TypedDict):
    a: str | None
    b: NotRequired[str | None]`},
		{"names that are no identifiers", `{"type":"object","properties":{"a-b":{},"class":{},"日本":{},"\"":{}},"required":["a-b","class","日本","\""],"additionalProperties":false}`, `XRequest = TypedDict("XRequest", {
    "a-b": Any,
    "class": Any,
    "日本": Any,
    "\"": Any,
})`},
		{"description", `{"type":"object","description":"One */ line.\nAnother @ts-ignore.","properties":{"a":{"type":"string","description":"The a."}},"additionalProperties":false}`, `class XRequest(TypedDict):
    "One */ line.\nAnother @ ts-ignore."

    #: The a.
    a: NotRequired[str]`},
		{"recursion", `{"type":"object","properties":{"next":{"$ref":"#"}},"additionalProperties":false}`, `class XRequest(TypedDict):
    next: NotRequired[XRequest]`},
		{"definition", `{"type":"array","items":{"$ref":"#/definitions/part"},"definitions":{"part":{"type":"string"}}}`, `XRequest: TypeAlias = list["XRequestPart"]


XRequestPart: TypeAlias = str`},
		{"tagged union", `{"oneOf":[{"type":"object","properties":{"kind":{"const":"one"}},"required":["kind"],"additionalProperties":false},{"type":"object","properties":{"kind":{"const":"two"}},"required":["kind"],"additionalProperties":false}]}`, `class XRequestOne(TypedDict):
    kind: Literal["one"]


class XRequestTwo(TypedDict):
    kind: Literal["two"]


XRequest: TypeAlias = Union["XRequestOne", "XRequestTwo"]`},
		{"intersection", `{"allOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"type":"object","properties":{"b":{"type":"integer"}}}]}`, `class XRequest(TypedDict):
    a: str
    b: NotRequired[int]`},
	} {
		if got := declarations(t, tt.schema); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}
