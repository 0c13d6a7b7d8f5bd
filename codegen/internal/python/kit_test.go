package python_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agentd/agentd/codegen/internal/modeltest"
	"github.com/agentd/agentd/codegen/internal/python"
)

// The classes on the kit have two methods for each capability, and no two of one name: not
// even where a capability is called like the stream of another.
func TestKitMethods(t *testing.T) {
	module := string(python.Emit(modeltest.Capabilities(t, `{"name":"a"},{"name":"a-stream"},{"name":"class"},{"name":"get-x"},{"name":"get_x"}`)))
	for _, class := range []string{"class Client:", "class AsyncClient:"} {
		_, body, _ := strings.Cut(module, class)
		body, _, _ = strings.Cut(body, "\n\n\n")
		var names []string
		for _, m := range regexp.MustCompile(`    (?:async )?def (\w+)\(`).FindAllStringSubmatch(body, -1) {
			names = append(names, m[1])
		}
		want := []string{
			"__init__", "a", "a_stream_ca97", "a_stream", "a_stream_stream", "class_", "class__stream",
			"get_x_e64b", "get_x_e64b_stream", "get_x_cd34", "get_x_cd34_stream",
		}
		if !slices.Equal(names, want) {
			t.Errorf("%s has %q, want %q", class, names, want)
		}
	}
}

// A module imports what it uses, and nothing else: checkers refuse unused names. What Python
// 3.10 does not have is not asked of it.
func TestKitImports(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"string"}`:                          "Any Awaitable Callable NoReturn TypeAlias TypedDict Union cast",
		`{"enum":["a","b"]}`:                         "Any Awaitable Callable Literal NoReturn TypeAlias TypedDict Union cast",
		`{"type":"array","items":false}`:             "Any Awaitable Callable NoReturn TYPE_CHECKING TypeAlias TypedDict Union cast; Never",
		`{"type":"object","properties":{"a":false}}`: "Any Awaitable Callable NoReturn TYPE_CHECKING TypeAlias TypedDict Union cast; Never, NotRequired",
	} {
		module := string(python.Emit(modeltest.Capabilities(t, `{"name":"x","inputSchema":`+schema+`}`)))
		_, imports, _ := strings.Cut(module, "\nfrom typing import (\n    ")
		imports, rest, _ := strings.Cut(imports, ",\n)\n")
		got := strings.ReplaceAll(imports, ",\n    ", " ")
		if _, later, ok := strings.Cut(rest, "    from typing_extensions import "); ok {
			later, _, _ = strings.Cut(later, "\n")
			got += "; " + later
		}
		if got != want {
			t.Errorf("%s imports %s, want %s", schema, got, want)
		}
	}
}
