package typescript_test

import (
	"strings"
	"testing"

	"github.com/agentd/agentd/codegen/internal/modeltest"
	"github.com/agentd/agentd/codegen/internal/typescript"
)

// A method is named like its capability, in the manner of TypeScript, and not like another
// method, nor what makes a class or a promise of an object.
func TestMethodNames(t *testing.T) {
	module := string(typescript.Emit(modeltest.Capabilities(t, `{"name":"reviewPr","description":"Reviews."},{"name":"review-pr"},{"name":"delete"},
		{"name":"then"},{"name":"constructor"},{"name":"stream"},{"name":"2fa"},{"name":"X"},{"name":"HTTP-get"}`)))
	for method, capability := range map[string]string{
		"reviewPr_ef99": "reviewPr", "reviewPr_0083": "review-pr", "delete": "delete", "then_21af": "then", "constructor_e3c1": "constructor",
		"stream_dca8": "stream", "call2fa": "2fa", "x": "X", "httpGet": "HTTP-get",
	} {
		_, body, _ := strings.Cut(module, "\n  "+method+"(payload: ")
		if _, body, _ = strings.Cut(body, "\n"); !strings.HasPrefix(body, "    return this.#caller.request(address, \""+capability+"\", payload, options);\n  }\n") {
			t.Errorf("%s: %.80s", method, body)
		}
	}
	if want := "  /**\n   * Reviews.\n   * Calls reviewPr.\n   */\n  reviewPr_ef99(payload: ReviewPr_ef99Request, options?: kit.RequestOptions): Promise<kit.Result<ReviewPr_ef99Response>> {\n"; !strings.Contains(module, want) {
		t.Errorf("no %s", want)
	}
}

// Both forms of a module have the same types, and name what takes an object.
func TestForms(t *testing.T) {
	api := modeltest.Capabilities(t, `{"name":"o","inputSchema":{"type":"object"}},{"name":"n","inputSchema":{"type":["object","null"]}}`)
	kit, standalone := string(typescript.Emit(api)), string(typescript.Standalone(api))
	if !strings.Contains(kit, `{ ...options, takesObject: ["o"] }`) || strings.Count(kit, "import ") != 1 || strings.Contains(standalone, "\nimport ") {
		t.Errorf("the forms are\n%s\nand\n%s", kit, standalone)
	}
	types := func(module string) string {
		_, module, _ = strings.Cut(module, "export type ORequest")
		module, _, _ = strings.Cut(module, "export const address")
		return module
	}
	if types(kit) == "" || types(kit) != types(standalone) {
		t.Errorf("types of the kit's form\n%s\nand of the other\n%s", types(kit), types(standalone))
	}
}
