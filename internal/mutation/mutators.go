package main

import (
	"go/ast"
	"go/token"
	"strconv"
)

// A finder collects the mutants of one file while ast.Inspect walks it.
type finder struct {
	path  string
	src   []byte
	at    *token.File
	stack []ast.Node // the nodes around the current one, outermost first
	found []mutant
}

// visit is the function for ast.Inspect.
func (f *finder) visit(n ast.Node) bool {
	// ast.Inspect calls with nil after the children of each node that returned
	// true, so pushes and pops match.
	if n == nil {
		f.stack = f.stack[:len(f.stack)-1]
		return true
	}
	if skipped(n, f.parent()) {
		return false
	}
	f.mutate(n)
	f.stack = append(f.stack, n)
	return true
}

// parent returns the node around the current one, or nil for the file.
func (f *finder) parent() ast.Node {
	if len(f.stack) == 0 {
		return nil
	}
	return f.stack[len(f.stack)-1]
}

// mutate adds the mutants of one node, without those of its children.
func (f *finder) mutate(n ast.Node) {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.IfStmt:
		f.invert(n.Cond)
		// An early exit that is never taken stands for a forgotten check. The
		// condition stays in the code, so that its variables stay in use.
		if exits(n.Body) && n.Else == nil {
			f.add("never taken", n.Cond, "false && ("+f.text(n.Cond)+")", "if "+f.text(n.Cond), "")
		}
	case *ast.ForStmt:
		if n.Cond != nil {
			f.invert(n.Cond)
		}
	case *ast.CaseClause:
		f.clause(n)
	case *ast.CommClause:
		if n.Comm != nil {
			f.dropClause(n, f.text(n.Comm))
		}
	case *ast.ReturnStmt:
		f.results(n)
	case *ast.BasicLit:
		f.integer(n)
	case ast.Stmt:
		f.statement(n)
	}
}

// add notes a mutant that replaces a node.
func (f *finder) add(kind string, n ast.Node, replacement, before, after string) {
	f.addRange(kind, n.Pos(), n.End(), replacement, before, after)
}

func (f *finder) addRange(kind string, from, to token.Pos, replacement, before, after string) {
	f.found = append(f.found, mutant{
		kind: kind, file: f.path, line: f.at.Line(from), start: f.at.Offset(from), end: f.at.Offset(to),
		replacement: replacement, before: before, after: after,
	})
}

// text is a node's source.
func (f *finder) text(n ast.Node) string {
	return string(f.src[f.at.Offset(n.Pos()):f.at.Offset(n.End())])
}

// binary mutates comparisons, && and ||.
func (f *finder) binary(n *ast.BinaryExpr) {
	if negated, ok := negation(n.Op); ok {
		f.operator("negated", n, negated)
	}
	if moved, ok := boundary(n.Op); ok {
		f.operator("boundary", n, moved)
	}
	switch n.Op {
	case token.LAND:
		f.operator("logic", n, token.LOR)
	case token.LOR:
		f.operator("logic", n, token.LAND)
	default:
		return
	}
	// && and || combine conditions that no other rule reaches. The operands of a
	// comparison are values, hence the return above.
	f.invert(n.X)
	f.invert(n.Y)
}

// operator adds a mutant of the operator alone; the report shows the operands with
// it.
func (f *finder) operator(kind string, n *ast.BinaryExpr, op token.Token) {
	x, y := f.text(n.X), f.text(n.Y)
	f.addRange(kind, n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), op.String(),
		x+" "+n.Op.String()+" "+y, x+" "+op.String()+" "+y)
}

// negation returns the opposite of a comparison.
func negation(op token.Token) (token.Token, bool) {
	switch op {
	case token.EQL:
		return token.NEQ, true
	case token.NEQ:
		return token.EQL, true
	case token.LSS:
		return token.GEQ, true
	case token.GEQ:
		return token.LSS, true
	case token.GTR:
		return token.LEQ, true
	case token.LEQ:
		return token.GTR, true
	}
	return op, false
}

// boundary returns the comparison that differs in the case of equality only.
func boundary(op token.Token) (token.Token, bool) {
	switch op {
	case token.LSS:
		return token.LEQ, true
	case token.LEQ:
		return token.LSS, true
	case token.GTR:
		return token.GEQ, true
	case token.GEQ:
		return token.GTR, true
	}
	return op, false
}

// invert mutates a boolean expression that holds no operator of its own, which
// binary would mutate.
func (f *finder) invert(n ast.Expr) {
	switch n := n.(type) {
	case *ast.BinaryExpr, *ast.ParenExpr:
	case *ast.UnaryExpr:
		f.add("negated", n, "("+f.text(n.X)+")", f.text(n), f.text(n.X))
	default:
		f.add("negated", n, "!("+f.text(n)+")", f.text(n), "!"+f.text(n))
	}
}

// exits reports whether a block ends by leaving what is around it.
func exits(b *ast.BlockStmt) bool {
	if len(b.List) == 0 {
		return false
	}
	switch b.List[len(b.List)-1].(type) {
	case *ast.ReturnStmt, *ast.BranchStmt:
		return true
	}
	return false
}

// clause drops a case of a switch, and inverts the conditions of a case
// without a tag. A default is no case.
func (f *finder) clause(n *ast.CaseClause) {
	if len(n.List) == 0 {
		return
	}
	if s := f.tagless(); s {
		for _, condition := range n.List {
			f.invert(condition)
		}
	}
	before := "case " + f.text(n.List[0])
	if len(n.List) > 1 {
		before += ", …"
	}
	f.dropClause(n, before)
}

// tagless reports whether the clause at hand belongs to a switch without a tag.
func (f *finder) tagless() bool {
	if len(f.stack) < 2 {
		return false
	}
	s, ok := f.stack[len(f.stack)-2].(*ast.SwitchStmt)
	return ok && s.Tag == nil
}

// dropClause adds a mutant without the clause.
func (f *finder) dropClause(n ast.Stmt, before string) {
	f.add("case dropped", n, "", before, "")
}

// results replaces a returned error by nil, and inverts true and false. The
// expression of the error is still evaluated: what it does, and what it uses,
// stays as it is.
func (f *finder) results(n *ast.ReturnStmt) {
	for _, result := range n.Results {
		if name, ok := result.(*ast.Ident); ok && (name.Name == "true" || name.Name == "false") {
			f.add("negated", name, "!"+name.Name, "return "+name.Name, "return !"+name.Name)
		}
	}
	declared := f.declaredResults()
	if len(n.Results) == 0 || len(declared) != len(n.Results) || declared[len(declared)-1] != "error" {
		return
	}
	last := n.Results[len(n.Results)-1]
	if text := f.text(last); text != "nil" {
		f.add("error lost", last, "func() error { _ = error("+text+"); return nil }()", "return "+text, "return nil")
	}
}

// declaredResults are the types of the results of the function around the
// current node.
func (f *finder) declaredResults() []string {
	for i := len(f.stack) - 1; i >= 0; i-- {
		var fields *ast.FieldList
		switch fn := f.stack[i].(type) {
		case *ast.FuncDecl:
			fields = fn.Type.Results
		case *ast.FuncLit:
			fields = fn.Type.Results
		default:
			continue
		}
		var types []string
		if fields != nil {
			for _, field := range fields.List {
				for range max(1, len(field.Names)) {
					types = append(types, f.text(field.Type))
				}
			}
		}
		return types
	}
	return nil
}

// integer moves a literal by one.
func (f *finder) integer(n *ast.BasicLit) {
	if n.Kind != token.INT || f.constantSkipped(n) {
		return
	}
	value, err := strconv.ParseInt(n.Value, 0, 64)
	if err != nil {
		return
	}
	if value > 0 {
		f.add("constant", n, strconv.FormatInt(value-1, 10), n.Value, strconv.FormatInt(value-1, 10)+f.around())
	}
	f.add("constant", n, strconv.FormatInt(value+1, 10), n.Value, strconv.FormatInt(value+1, 10)+f.around())
}

// around is the expression or statement that a literal stands in, for the report.
func (f *finder) around() string {
	if p := f.parent(); p != nil {
		return "  in  " + f.text(p)
	}
	return ""
}

// statement skips a statement of a block. It is kept behind a false condition,
// so that the variables and packages it uses stay in use.
func (f *finder) statement(n ast.Stmt) {
	switch parent := f.parent().(type) {
	case *ast.BlockStmt, *ast.CaseClause:
	case *ast.CommClause:
		if parent.Comm == n {
			return
		}
	default:
		return
	}
	switch s := n.(type) {
	case *ast.AssignStmt:
		if s.Tok == token.DEFINE {
			return // its variables would be missing
		}
	case *ast.ExprStmt, *ast.IncDecStmt, *ast.SendStmt, *ast.GoStmt, *ast.DeferStmt:
	default:
		return
	}
	f.add("skipped", n, "if false { "+f.text(n)+" }", f.text(n), "")
}
