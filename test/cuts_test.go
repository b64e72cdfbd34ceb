package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"
)

// cutIn are the files of tests that end the agent at each step that they list or compare with.
var cutIn = []string{"../etcdmember/cuts_test.go", "../etcdmember/ringtest/cuts_test.go",
	"../agent/certificates/bundle_test.go"}

// A step that is new needs a test that ends the agent there. It stands here because it reads files of the repository:
// etcdmember's own tests are not run again in a new clone where nothing of theirs has changed.
func TestEveryStepIsCut(t *testing.T) {
	var cut []string
	for _, path := range cutIn {
		named := stepsCutIn(t, path)
		if len(named) == 0 {
			t.Errorf("%s ends no agent", path)
		}
		cut = append(cut, named...)
	}
	names := stepNames(t)
	for _, name := range names {
		if !slices.Contains(cut, name) {
			t.Errorf("no test ends the agent at acts.%s", name)
		}
	}
	if len(names) < 40 {
		t.Errorf("only %d steps were found", len(names))
	}
}

// stepsCutIn are the names of the steps in a file's lists of steps, and of those that a step is compared with.
func stepsCutIn(t *testing.T, path string) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	note := func(values ...ast.Expr) {
		for _, v := range values {
			s, ok := v.(*ast.SelectorExpr)
			if !ok {
				continue
			}
			if p, ok := s.X.(*ast.Ident); ok && p.Name == "acts" {
				names = append(names, s.Sel.Name)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if _, ok := n.Type.(*ast.ArrayType); ok {
				note(n.Elts...)
			}
		case *ast.BinaryExpr:
			if n.Op == token.EQL {
				note(n.X, n.Y)
			}
		}
		return true
	})
	return names
}

// stepNames are the names of the steps' constants.
func stepNames(t *testing.T) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../etcdmember/acts/steps.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := v.Type.(*ast.Ident); ok && kind.Name == "Step" {
			for _, name := range v.Names {
				names = append(names, name.Name)
			}
		}
		return true
	})
	return names
}
