package health_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"

	"github.com/agentd/agentd/daemon/health"
)

// Every kind is one of those that an agent reports, so that a metric has a series for it, or
// of those that it cannot report of itself.
func TestKindsAreAll(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "condition.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	notOfItself, n := []health.Kind{health.Agent, health.Contract, health.Tools}, 0
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "Kind" {
			return true
		}
		text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		n++
		if kind := health.Kind(text); slices.Contains(health.Kinds(), kind) == slices.Contains(notOfItself, kind) {
			t.Errorf("%s is in none of the lists, or in both", kind)
		}
		return true
	})
	if n < 10 {
		t.Errorf("%d kinds were found", n)
	}
}
