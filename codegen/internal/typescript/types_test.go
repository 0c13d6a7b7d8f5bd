package typescript_test

import (
	"strings"
	"testing"

	"github.com/agentd/agentd/codegen/internal/modeltest"
	"github.com/agentd/agentd/codegen/internal/typescript"
)

// declarations is what a module declares for the schema of a request, without
// the words around a single type.
func declarations(t *testing.T, schema string) string {
	t.Helper()
	module := string(typescript.Standalone(modeltest.API(t, schema)))
	_, types, _ := strings.Cut(module, "\n\n")
	types, _, ok := strings.Cut(types, "\n\nexport type XResponse")
	if !ok {
		t.Fatalf("no types in\n%s", module)
	}
	if one, ok := strings.CutPrefix(types, "export type XRequest = "); ok && strings.Count(types, "export type") == 1 {
		return strings.TrimSuffix(one, ";")
	}
	return types
}

func TestTypes(t *testing.T) {
	for _, tt := range []struct{ name, schema, want string }{
		{"string", `{"type":"string"}`, `string`},
		{"integer", `{"type":"integer"}`, `number`},
		{"integer beyond 64 bits", `{"type":"integer","minimum":-1e30}`, "/** At least -1e30. */\nexport type XRequest = number;"},
		{"number", `{"type":"number"}`, `number`},
		{"boolean", `{"type":"boolean"}`, `boolean`},
		{"null", `{"type":"null"}`, `null`},
		{"anything", `{}`, `unknown`},
		{"nothing", `{"type":"object","properties":{"a":false},"required":["a"]}`, `never`},
		{"string or null", `{"type":["string","null"]}`, `string | null`},
		{"string or integer", `{"type":["string","integer"]}`, `string | number`},
		{"array", `{"type":"array","items":{"type":"integer"}}`, `Array<number>`},
		{"array of anything", `{"type":"array"}`, `Array<unknown>`},
		{"array of unions", `{"type":"array","items":{"type":["string","boolean"]}}`, `Array<string | boolean>`},
		{"enum of strings", `{"enum":["low","a b",""]}`, `"low" | "a b" | ""`},
		{"enum of integers", `{"enum":[1,-2,9007199254740993]}`, `number`},
		{"enum of numbers", `{"enum":[0.5,2.5]}`, `0.5 | 2.5`},
		{"enum of both booleans", `{"enum":[true,false]}`, `boolean`},
		{"enum of one boolean", `{"enum":[true]}`, `true`},
		{"enum of several kinds", `{"enum":["x",7,null]}`, `"x" | 7 | null`},
		{"const object", `{"const":{"a":[1,"two"]}}`, `{
  a: [1, "two"];
}`},
		{"closed object", `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["a"],"additionalProperties":false}`, `{
  a: string;
  b?: number;
}`},
		{"empty closed object", `{"type":"object","additionalProperties":false}`, `Record<string, never>`},
		{"open object", `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, `{
  a: string;
  [key: string]: unknown;
}`},
		{"object of any names", `{"type":"object","additionalProperties":{"type":"integer"}}`, `{
  [key: string]: number;
}`},
		{"object with typed others", `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":{"type":"integer"}}`, `{
  a?: string;
  [key: string]: number | string | undefined;
}`},
		{"object or null", `{"type":["object","null"],"properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`, `{
  a: string;
} | null`},
		{"member that may be null", `{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"type":["string","null"]}},"required":["a"],"additionalProperties":false}`, `{
  a: string | null;
  b?: string | null;
}`},
		{"names that are no identifiers", `{"type":"object","properties":{"a-b":{},"class":{},"日本":{},"\"":{}},"required":["a-b","class","日本","\""],"additionalProperties":false}`, `{
  "a-b": unknown;
  class: unknown;
  "日本": unknown;
  "\"": unknown;
}`},
		{"description", `{"type":"object","description":"One */ line.\nAnother @ts-ignore.","properties":{"a":{"type":"string","description":"The a."}},"additionalProperties":false}`, `/**
 * One *\/ line.
 * Another @ ts-ignore.
 */
export type XRequest = {
  /** The a. */
  a?: string;
};`},
		{"recursion", `{"type":"object","properties":{"next":{"$ref":"#"}},"additionalProperties":false}`, `{
  next?: XRequest;
}`},
		{"definition", `{"type":"array","items":{"$ref":"#/definitions/part"},"definitions":{"part":{"type":"string"}}}`, `export type XRequest = Array<XRequestPart>;

export type XRequestPart = string;`},
		{"tagged union", `{"oneOf":[{"type":"object","properties":{"kind":{"const":"one"}},"required":["kind"],"additionalProperties":false},{"type":"object","properties":{"kind":{"const":"two"}},"required":["kind"],"additionalProperties":false}]}`, `{
  kind: "one";
} | {
  kind: "two";
}`},
		{"intersection", `{"allOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"type":"object","properties":{"b":{"type":"integer"}}}]}`, `{
  a: string;
  [key: string]: unknown;
} & {
  b?: number;
  [key: string]: unknown;
}`},
	} {
		if got := declarations(t, tt.schema); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}
