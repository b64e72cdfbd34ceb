package house

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// A pattern.Of that does not parse would panic where it is first needed, perhaps long after the start; staticcheck
// looks at regexp's own functions alone.
func TestEveryPatternIsARegularExpression(t *testing.T) {
	found := 0
	for _, p := range packages(t) {
		if !slices.Contains(p.Imports, module+"internal/pattern") {
			continue
		}
		fset := token.NewFileSet()
		for _, file := range p.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, file), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || types.ExprString(call.Fun) != "pattern.Of" {
					return true
				}
				found++
				text, err := types.Eval(fset, nil, token.NoPos, types.ExprString(call.Args[0]))
				if err != nil || text.Value == nil {
					t.Errorf("%s: not a constant text: %v", fset.Position(call.Pos()), err)
					return true
				}
				if _, err := regexp.Compile(constant.StringVal(text.Value)); err != nil {
					t.Errorf("%s: %v", fset.Position(call.Pos()), err)
				}
				return true
			})
		}
	}
	if found == 0 {
		t.Error("no pattern was found")
	}
}
