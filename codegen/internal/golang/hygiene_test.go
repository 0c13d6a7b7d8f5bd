package golang_test

import (
	"go/ast"
	"strings"
	"testing"

	"github.com/agentd/agentd/codegen/internal/golang"
	"github.com/agentd/agentd/codegen/internal/modeltest"
)

// A name in one place of a schema can be that of another: of a constant and a
// type, of two members, of a member and a method of the type.
func TestNamesDoNotCollide(t *testing.T) {
	for name, schema := range map[string]string{
		"constant and type": `{"type":"object","properties":{
			"kind":{"enum":["item","other"]},"kindItem":{"type":"object","properties":{"a":{}}}}}`,
		"members that differ in case":   `{"type":"object","properties":{"a":{},"A":{},"a_":{},"Extra":{}}}`,
		"members called like methods":   `{"type":"object","properties":{"MarshalJSON":{},"UnmarshalJSON":{}}}`,
		"values that differ in symbols": `{"enum":["a","a!","A","-a","","Empty","Value","*"]}`,
		"definitions that differ in case": `{"type":"array","items":{"anyOf":[{"$ref":"#/definitions/a"},{"$ref":"#/definitions/A"}]},
			"definitions":{"a":{"type":"string"},"A":{"type":"integer"}}}`,
	} {
		_, file := parse(t, schema)
		seen := map[string]bool{}
		check := func(scope, n string) {
			if seen[scope+"."+n] {
				t.Errorf("%s: %s.%s is declared twice", name, scope, n)
			}
			seen[scope+"."+n] = true
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
				receiver := f.Recv.List[0].Type
				if star, ok := receiver.(*ast.StarExpr); ok {
					receiver = star.X
				}
				check(receiver.(*ast.Ident).Name, f.Name.Name)
			}
			decl, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					check("", spec.Name.Name)
					if s, ok := spec.Type.(*ast.StructType); ok {
						for _, f := range s.Fields.List {
							check(spec.Name.Name, f.Names[0].Name)
						}
					}
				case *ast.ValueSpec:
					if spec.Names[0].Name != "_" {
						check("", spec.Names[0].Name)
					}
				}
			}
		}
	}
}

// The import is there exactly where something needs it: Go refuses any other.
func TestImportsEncodingJSONOnlyIfUsed(t *testing.T) {
	for schema, want := range map[string]bool{
		`{"type":"string"}`:                  false,
		`{"type":"integer","minimum":-1e30}`: true,
		`{}`:                                 true,
		`{"type":"object"}`:                  true,
		`{"type":"array","items":{"type":"object","additionalProperties":false}}`: false,
	} {
		api := modeltest.Capabilities(t, `{"name":"x","inputSchema":`+schema+`,"outputSchema":{"type":"null"}}`)
		source := string(golang.Emit(api))
		if got := strings.Contains(source, `"encoding/json"`); got != want {
			t.Errorf("%s: imports encoding/json = %v", schema, got)
		}
		if used := strings.Contains(source, "json.RawMessage") || strings.Contains(source, "json.Number"); used != want {
			t.Errorf("%s: uses it = %v", schema, used)
		}
	}
}

// A recursive member that must be there is a pointer, since a struct cannot
// hold itself, and must not be nil.
func TestRecursiveRequiredMemberIsBoxed(t *testing.T) {
	const schema = `{"type":"object","properties":{"next":{"$ref":"#"}},"required":["next"],"additionalProperties":false}`
	if got, want := declarations(t, schema), "XRequest struct {\n\tNext *XRequest\n}"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := calls(t, schema, "UnmarshalJSON"), `o.Boxed("next", &n.Next)`; !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	const list = `{"type":"object","properties":{"next":{"type":"array","items":{"$ref":"#"}}},"required":["next"],"additionalProperties":false}`
	if got, want := declarations(t, list), "XRequest struct {\n\tNext []XRequest\n}"; got != want {
		t.Errorf("got %s, want %s: a slice needs no pointer", got, want)
	}
}

func TestClientAndServer(t *testing.T) {
	source := string(golang.Emit(modeltest.Capabilities(t, `
		{"name":"get-user","skill":"users","description":"Get one.","inputSchema":{"type":"string"},"outputSchema":{"type":"integer"}},
		{"name":"get_user"}`)))
	for _, want := range []string{
		"// Source: agent://agent\n// Capabilities: get-user, get_user\n// Digest: sha256:",
		"package agent\n", "const _ = typed.IsAtLeastVersion2\n", `const Address = "agent://agent"`,
		"// GetUser_5d95 calls get-user.\n//\n// Get one.\nfunc (c *Client) GetUser_5d95(ctx context.Context, request GetUser_5d95Request, opts ...typed.CallOption) (GetUser_5d95Response, error) {\n" +
			"\treturn typed.Request[GetUser_5d95Response](ctx, c.caller, Address, \"get-user\", request, opts)\n}\n",
		"func (c *Client) GetUser_bf1e(ctx context.Context, request GetUser_bf1eRequest,",
		"\tGetUser_bf1e(ctx context.Context, request GetUser_bf1eRequest) (GetUser_bf1eResponse, error)\n",
		"\ttyped.Handle(m, \"get-user\", \"users\", s.GetUser_5d95)\n\ttyped.Handle(m, \"get_user\", \"get_user\", s.GetUser_bf1e)\n",
	} {
		if !strings.Contains(source, want) {
			t.Errorf("no %q in\n%s", want, source)
		}
	}
}
