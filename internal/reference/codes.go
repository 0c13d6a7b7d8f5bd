package reference

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/agentd/agentd/rpc"
)

// A constant is one of the program's source, with what its comment says.
type constant struct{ name, value, doc string }

// constants reads those of a source file whose names satisfy wanted.
func constants(file string, wanted func(name, typ string) bool) ([]constant, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var all []constant
	for _, decl := range parsed.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		typ := ""
		for _, spec := range group.Specs {
			v := spec.(*ast.ValueSpec)
			if t, ok := v.Type.(*ast.Ident); ok {
				typ = t.Name
			} else if len(v.Values) > 0 {
				typ = ""
			}
			if name := v.Names[0].Name; ast.IsExported(name) && wanted(name, typ) {
				all = append(all, constant{name, literal(v), sentence(name, v)})
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has none of the constants", file)
	}
	return all, nil
}

// literal is the value of a constant that is written as one.
func literal(v *ast.ValueSpec) string {
	if len(v.Values) == 0 {
		return ""
	}
	lit, ok := v.Values[0].(*ast.BasicLit)
	if !ok {
		return ""
	}
	if text, err := strconv.Unquote(lit.Value); err == nil {
		return text
	}
	return lit.Value
}

// sentence is the comment of a constant without its name.
func sentence(name string, v *ast.ValueSpec) string {
	text := v.Doc.Text()
	if text == "" {
		text = v.Comment.Text()
	}
	text = strings.Join(strings.Fields(text), " ")
	for _, start := range []string{"An " + name + " is ", "A " + name + " is ", name + ": ", name + " means that ", name + " is ", name + " are "} {
		text = strings.TrimPrefix(text, start)
	}
	text = strings.NewReplacer("[", "", "]", "").Replace(text)
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}

// ErrorPage lists the codes by which programs tell what has gone wrong. root is that of the
// sources.
func ErrorPage(root string) ([]byte, error) {
	var b strings.Builder
	b.WriteString(generated + "\n# Error codes\n\nCodes stay: programs match on them, and texts may change.\n")
	codes, err := constants(filepath.Join(root, "rpc/code.go"), func(name, typ string) bool {
		return strings.HasPrefix(name, "Code") && typ == "Code" || name == "CodeInvalidRequest"
	})
	if err != nil {
		return nil, err
	}
	docs := map[string]string{}
	for i, c := range rpc.Codes() { // which are numbered as they stand
		docs[c.String()] = codes[i].doc
	}
	b.WriteString("\n## Of calls\n\nIn `error.code` of a result, and `code` of records. *Retryable* says that the same call may succeed later; whether it is safe\nto repeat is up to the capability.\n\n| code | status | retryable | meaning |\n|---|---|---|---|\n")
	for _, c := range rpc.Codes() {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", c, c.Status(), yes(c.Retryable()), cell(docs[c.String()]))
	}
	for _, part := range []struct {
		title, text, typ string
		files            []string
	}{
		{"Of tools", "Of the tools that agents have ([registry.md](../registry.md)).", "Code", []string{"registry/errors.go"}},
		{"Of conditions", "`kind` of what is wrong with a running agent. The codes of each kind are in [running.md](../running.md#faults-and-how-they-end).", "Kind", []string{"daemon/health/condition.go"}},
		{"Of findings", "Of `agentd fleet validate`, with their severity in [running.md](../running.md#validation).", "Code", []string{"fleet/lint.go", "internal/fleetlint/lint.go"}},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| code | meaning |\n|---|---|\n", part.title, part.text)
		for _, file := range part.files {
			all, err := constants(filepath.Join(root, file), func(_, typ string) bool { return typ == part.typ || typ == "" })
			if err != nil {
				return nil, err
			}
			for _, c := range all {
				if c.value != "" {
					fmt.Fprintf(&b, "| `%s` | %s |\n", c.value, cell(c.doc))
				}
			}
		}
	}
	return []byte(b.String()), nil
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// ExitPage lists the exit statuses.
func ExitPage(root string) ([]byte, error) {
	all, err := constants(filepath.Join(root, "internal/cli/exit.go"), func(name, _ string) bool { return strings.HasPrefix(name, "Exit") })
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString(generated + "\n# Exit statuses\n\nThose of every command of agentd. They never change.\n\n| status | meaning |\n|---|---|\n| 0 | The command did its work, and what it checked is in order. |\n")
	for _, c := range all {
		fmt.Fprintf(&b, "| %s | %s |\n", c.value, cell(c.doc))
	}
	return []byte(b.String()), nil
}
