package main

import (
	"go/ast"
	"go/token"
	"strings"
)

// What is not mutated. Each rule names mutants that either change nothing
// which a caller can see, or that only a test of the text would kill.

// skipped reports whether nothing in a node is mutated.
func skipped(n, parent ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncDecl:
		return n.Body == nil || isText(n.Name.Name) || strings.HasSuffix(n.Name.Name, "Hint") // of a size: speed alone
	case *ast.GenDecl:
		return n.Tok == token.IMPORT || n.Tok == token.TYPE // paths, tags, sizes of arrays
	case *ast.ExprStmt:
		call, ok := n.X.(*ast.CallExpr)
		return ok && isLog(call)
	case *ast.DeferStmt:
		return isRelease(n.Call)
	case *ast.ArrayType:
		return true
	case *ast.CommentGroup, *ast.Field:
		return true
	case ast.Expr:
		call, ok := parent.(*ast.CallExpr)
		return ok && isSizeHint(call, n)
	}
	return false
}

// isText reports whether a method only puts a value into words.
func isText(name string) bool {
	switch name {
	case "String", "Error", "GoString", "Format", "LogValue":
		return true
	}
	return false
}

// isLog reports whether a call writes a log line.
func isLog(call *ast.CallExpr) bool {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	switch strings.TrimSuffix(method.Sel.Name, "Context") {
	case "Debug", "Info", "Warn", "Error", "Log", "LogAttrs":
	default:
		return false
	}
	// The receiver's last name decides: log.Info, c.cfg.Logger.Warn and
	// Logger().Error are all log calls, while t.Error and err.Error are not.
	receiver := method.X
	if call, ok := receiver.(*ast.CallExpr); ok {
		receiver = call.Fun
	}
	if field, ok := receiver.(*ast.SelectorExpr); ok {
		receiver = field.Sel
	}
	name, ok := receiver.(*ast.Ident)
	return ok && strings.Contains(strings.ToLower(name.Name), "log")
}

// isRelease reports whether a deferred call gives back what the garbage
// collector or the end of the process gives back too: a test would have to
// count open files or timers.
func isRelease(call *ast.CallExpr) bool {
	switch fn := call.Fun.(type) {
	case *ast.Ident:
		return fn.Name == "cancel" || fn.Name == "stop"
	case *ast.SelectorExpr:
		return fn.Sel.Name == "Close" || fn.Sel.Name == "Stop"
	}
	return false
}

// isSizeHint reports whether an argument is the capacity of a make, or the
// size of its map: they change the speed alone.
func isSizeHint(call *ast.CallExpr, argument ast.Expr) bool {
	if name, ok := call.Fun.(*ast.Ident); !ok || name.Name != "make" || len(call.Args) < 2 {
		return false
	}
	if len(call.Args) == 3 {
		return argument == call.Args[2]
	}
	// The second argument of a slice is its length, which callers see.
	_, isMap := call.Args[0].(*ast.MapType)
	return isMap && argument == call.Args[1]
}

// constantSkipped reports whether one more or less of a literal makes no difference
// that a test should notice: file modes, bounds in the thousands, -1 as a marker
// (which code tests with < 0), the first value of an enumeration, and durations
// such as 5*time.Second.
func (f *finder) constantSkipped(n *ast.BasicLit) bool {
	const bound = 5 // digits
	if strings.HasPrefix(n.Value, "0o") || strings.HasPrefix(n.Value, "0b") || len(n.Value) >= bound {
		return true
	}
	switch around := f.parent().(type) {
	case *ast.UnaryExpr:
		return around.Op == token.SUB
	case *ast.BinaryExpr:
		if name, ok := around.X.(*ast.Ident); ok && name.Name == "iota" {
			return true
		}
		return around.Op == token.MUL && (isDuration(around.X) || isDuration(around.Y))
	}
	return false
}

// isDuration reports whether an expression is a unit of time, by its package alone:
// the source is not type-checked.
func isDuration(n ast.Expr) bool {
	unit, ok := n.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	name, ok := unit.X.(*ast.Ident)
	return ok && name.Name == "time"
}
