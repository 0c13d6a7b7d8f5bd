package golang_test

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/agentd/agentd/codegen/internal/golang"
	"github.com/agentd/agentd/codegen/internal/modeltest"
)

// parse is the generated file of a schema, which must be Go.
func parse(t *testing.T, schema string) (*token.FileSet, *ast.File) {
	t.Helper()
	source := golang.Emit(modeltest.API(t, schema))
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "agent.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatalf("%v in\n%s", err, source)
	}
	return files, file
}

// declarations are the types and constants that a schema gives, without
// comments; those of the response, the client and the server are left out.
func declarations(t *testing.T, schema string) string {
	t.Helper()
	files, file := parse(t, schema)
	var out bytes.Buffer
	for _, d := range file.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok == token.IMPORT {
			continue
		}
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if !strings.HasPrefix(spec.Name.Name, "XRequest") {
					continue
				}
			case *ast.ValueSpec:
				if !strings.HasPrefix(spec.Names[0].Name, "XRequest") {
					continue
				}
			}
			if err := format.Node(&out, files, spec); err != nil {
				t.Fatal(err)
			}
			out.WriteByte('\n')
		}
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// calls are the calls that the methods of XRequest make of package typed.
func calls(t *testing.T, schema, method string) string {
	t.Helper()
	files, file := parse(t, schema)
	var out []string
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv == nil || f.Name.Name != method {
			continue
		}
		if star, ok := f.Recv.List[0].Type.(*ast.StarExpr); ok {
			f.Recv.List[0].Type = star.X
		}
		if f.Recv.List[0].Type.(*ast.Ident).Name != "XRequest" {
			continue
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				var text bytes.Buffer
				if err := format.Node(&text, files, call); err != nil {
					t.Fatal(err)
				}
				out = append(out, text.String())
			}
			return true
		})
	}
	return strings.Join(out, "\n")
}

func TestTypes(t *testing.T) {
	for _, tt := range []struct{ name, schema, want string }{
		{"string", `{"type":"string","minLength":2}`, `XRequest = string`},
		{"integer", `{"type":"integer"}`, `XRequest = int64`},
		{"integer beyond 64 bits", `{"type":"integer","minimum":-1e30}`, `XRequest = json.Number`},
		{"number", `{"type":"number"}`, `XRequest = float64`},
		{"boolean", `{"type":"boolean"}`, `XRequest = bool`},
		{"null", `{"type":"null"}`, `XRequest = typed.Null`},
		{"anything", `{}`, `XRequest = json.RawMessage`},
		{"nothing", `{"type":"object","properties":{"a":false},"required":["a"]}`, `XRequest = typed.Never`},
		{"string or null", `{"type":["string","null"]}`, `XRequest = string`},
		{"string or integer", `{"type":["string","integer"]}`, `XRequest struct {
	String  *string
	Integer *int64
}`},
		{"array", `{"type":"array","items":{"type":"integer"}}`, `XRequest []int64`},
		{"array of anything", `{"type":"array"}`, `XRequest []json.RawMessage`},
		{"array of unions", `{"type":"array","items":{"type":["string","boolean"]}}`, `XRequest []XRequestItem
XRequestItem struct {
	String  *string
	Boolean *bool
}`},
		{"enum of strings", `{"enum":["low","a b",""]}`, `XRequest string
XRequestLow XRequest = "low"
XRequestAB XRequest = "a b"
XRequestEmpty XRequest = ""`},
		{"enum of integers", `{"enum":[1,-2,9007199254740993]}`, `XRequest int64
XRequest1 XRequest = 1
XRequestMinus2 XRequest = -2
XRequest9007199254740993 XRequest = 9007199254740993`},
		{"enum of numbers", `{"enum":[0.5,2.5]}`, `XRequest float64
XRequest05 XRequest = 0.5
XRequest25 XRequest = 2.5`},
		{"enum of both booleans", `{"enum":[true,false]}`, `XRequest = bool`},
		{"enum of one boolean", `{"enum":[true]}`, `XRequest bool
XRequestTrue XRequest = true`},
		{"enum of several kinds", `{"enum":["x",7,null]}`, `XRequest struct {
	X  *XRequestX
	X7 *XRequestX7
}
XRequestX string
XRequestXX XRequestX = "x"
XRequestX7 int64
XRequestX77 XRequestX7 = 7`},
		{"const object", `{"const":{"a":[1,"two"]}}`, `XRequest struct {
	A []XRequestAItem
}
XRequestAItem struct {
	X1  *XRequestAItemX1
	Two *XRequestAItemTwo
}
XRequestAItemX1 int64
XRequestAItemX11 XRequestAItemX1 = 1
XRequestAItemTwo string
XRequestAItemTwoTwo XRequestAItemTwo = "two"`},
		{"closed object", `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["a"],"additionalProperties":false}`, `XRequest struct {
	A string
	B *int64
}`},
		{"empty closed object", `{"type":"object","additionalProperties":false}`, `XRequest struct {
}`},
		{"open object", `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, `XRequest struct {
	A string

	Extra map[string]json.RawMessage
}`},
		{"object of any names", `{"type":"object","additionalProperties":{"type":"integer"}}`, `XRequest map[string]int64`},
		{"object with typed others", `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":{"type":"integer"}}`, `XRequest struct {
	A *string

	Extra map[string]int64
}`},
		{"object or null", `{"type":["object","null"],"properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`, `XRequest struct {
	A string
}`},
		{"member that may be null", `{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"type":["string","null"]}},"required":["a"],"additionalProperties":false}`, `XRequest struct {
	A *string
	B typed.Optional[*string]
}`},
		{"names that are no identifiers", `{"type":"object","properties":{"a-b":{},"class":{},"日本":{},"\"":{}},"required":["a-b","class","日本","\""],"additionalProperties":false}`, `XRequest struct {
	AB     json.RawMessage
	Class  json.RawMessage
	X_cf2a json.RawMessage
	X_8a33 json.RawMessage
}`},
		{"description", `{"type":"object","description":"One */ line.\nAnother @ts-ignore.","properties":{"a":{"type":"string","description":"The a."}},"additionalProperties":false}`, `XRequest struct {
	A *string
}`},
		{"recursion", `{"type":"object","properties":{"next":{"$ref":"#"}},"additionalProperties":false}`, `XRequest struct {
	Next *XRequest
}`},
		{"definition", `{"type":"array","items":{"$ref":"#/definitions/part"},"definitions":{"part":{"type":"string"}}}`, `XRequest []XRequestPart
XRequestPart = string`},
		{"tagged union", `{"oneOf":[{"type":"object","properties":{"kind":{"const":"one"}},"required":["kind"],"additionalProperties":false},{"type":"object","properties":{"kind":{"const":"two"}},"required":["kind"],"additionalProperties":false}]}`, `XRequest struct {
	One *XRequestOne
	Two *XRequestTwo
}
XRequestOne struct {
	Kind XRequestOneKind
}
XRequestOneKind string
XRequestOneKindOne XRequestOneKind = "one"
XRequestTwo struct {
	Kind XRequestTwoKind
}
XRequestTwoKind string
XRequestTwoKindTwo XRequestTwoKind = "two"`},
		{"intersection", `{"allOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"type":"object","properties":{"b":{"type":"integer"}}}]}`, `XRequest struct {
	A string
	B *int64

	Extra map[string]json.RawMessage
}`},
	} {
		if got := declarations(t, tt.schema); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}

func TestCodecs(t *testing.T) {
	for _, tt := range []struct{ name, schema, decode, encode string }{
		{"string or integer", `{"type":["string","integer"]}`, `typed.DecodeUnion(data, &n.String, &n.Integer)`, `typed.EncodeUnion(v.String, v.Integer)`},
		{"enum of strings", `{"enum":["low","a b",""]}`, `typed.DecodeEnum(data, v, XRequestLow, XRequestAB, XRequestEmpty)`, ``},
		{"closed object", `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["a"],"additionalProperties":false}`, `typed.DecodeObject(data)
o.Required("a", &n.A)
o.Optional("b", &n.B)
o.Closed()
o.Err()`, `typed.EncodeObject()
o.Required("a", v.A)
o.Optional("b", v.B)
o.Bytes()`},
		{"empty closed object", `{"type":"object","additionalProperties":false}`, `typed.DecodeObject(data)
o.Closed()
o.Err()`, `typed.EncodeObject()
o.Bytes()`},
		{"open object", `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, `typed.DecodeObject(data)
o.Required("a", &n.A)
o.Rest(&n.Extra)
o.Err()`, `typed.EncodeObject()
o.Required("a", v.A)
o.Rest(v.Extra)
o.Bytes()`},
		{"object of any names", `{"type":"object","additionalProperties":{"type":"integer"}}`, ``, ``},
		{"member that may be null", `{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"type":["string","null"]}},"required":["a"],"additionalProperties":false}`, `typed.DecodeObject(data)
o.Required("a", &n.A)
o.Optional("b", &n.B)
o.Closed()
o.Err()`, `typed.EncodeObject()
o.Required("a", v.A)
o.Optional("b", v.B)
o.Bytes()`},
		{"constant and forbidden members", `{"type":"object","properties":{"kind":{"const":"a"},"maybe":{"const":"b"},"never":false},"required":["kind"]}`, `typed.DecodeObject(data)
o.Required("kind", &n.Kind)
o.Optional("maybe", &n.Maybe)
o.Forbidden("never")
o.Rest(&n.Extra)
o.Err()`, `typed.EncodeObject()
o.Constant("kind", v.Kind, XRequestKindA)
o.Optional("maybe", v.Maybe)
o.Forbidden("never")
o.Rest(v.Extra)
o.Bytes()`},
		{"forbidden members of a closed object", `{"type":"object","properties":{"never":false},"additionalProperties":false}`, `typed.DecodeObject(data)
o.Closed()
o.Err()`, `typed.EncodeObject()
o.Bytes()`},
		{"recursion", `{"type":"object","properties":{"next":{"$ref":"#"}},"additionalProperties":false}`, `typed.DecodeObject(data)
o.Optional("next", &n.Next)
o.Closed()
o.Err()`, `typed.EncodeObject()
o.Optional("next", v.Next)
o.Bytes()`},
	} {
		if got := calls(t, tt.schema, "UnmarshalJSON"); got != tt.decode {
			t.Errorf("%s: decoding calls\n%s\nwant\n%s", tt.name, got, tt.decode)
		}
		if got := calls(t, tt.schema, "MarshalJSON"); got != tt.encode {
			t.Errorf("%s: encoding calls\n%s\nwant\n%s", tt.name, got, tt.encode)
		}
	}
}
