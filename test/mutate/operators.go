package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// The operators: the faults that are planted. Each has to be a slip that somebody could make in a table of conditions.
//
//	drop guard     the condition of an if, or of a case of a switch without a value, never holds
//	negate guard   it holds where it did not; so does what a predicate returns
//	drop operand   one operand of && or || is not asked
//	off by one     < becomes <=, > becomes >=, and the reverse; what was one more or one less is not
//	swap cases     of two neighbors in a switch without a value, the second comes first
//	drop row       a row of a table is missing
//	swap rows      of two neighbors in a table, the second comes first

// operate plants every fault in a declaration.
func (s *schemata) operate(d declaration) {
	s.name = d.name
	done := map[ast.Expr]bool{} // operands of what was met as a whole
	ast.Inspect(d.node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			s.guard(n.Cond)
		case *ast.SwitchStmt:
			if n.Tag == nil {
				s.cases(n)
			}
		case *ast.ReturnStmt:
			if len(n.Results) == 1 && s.isBool(n.Results[0]) {
				s.negate("negate result", n.Results[0])
			}
		case *ast.BinaryExpr:
			s.binary(n, done)
		case *ast.ValueSpec:
			if table, ok := s.table(n); ok {
				s.rows(table)
			}
		}
		return true
	})
}

func (s *schemata) guard(cond ast.Expr) {
	s.plant("drop guard", cond, "(!isMutant(#) && (", "))")
	s.negate("negate guard", cond)
}

func (s *schemata) negate(operator string, x ast.Expr) {
	s.plant(operator, x, "(isMutant(#) != (", "))")
}

// cases are guards, and their order decides. The first of two goes after the second where it holds only if that one
// does not.
func (s *schemata) cases(n *ast.SwitchStmt) {
	var before *ast.CaseClause
	for _, stmt := range n.Body.List {
		clause := stmt.(*ast.CaseClause)
		for _, x := range clause.List {
			s.guard(x)
		}
		if before != nil && clause.List != nil && before.List != nil {
			s.swapCases(before, clause)
		}
		before = clause
	}
}

func (s *schemata) swapCases(first, second *ast.CaseClause) {
	var text []string
	for _, x := range second.List {
		text = append(text, "("+s.textOf(x)+")")
	}
	name := "swap cases `" + s.oneLine(first.List[0]) + "` and `" + s.oneLine(second.List[0]) + "`"
	number := s.add(name, first)
	for _, x := range first.List {
		s.edit(number, x, "((", ") && !(isMutant(#) && ("+strings.Join(text, " || ")+")))")
	}
}

// binary plants faults in a comparison, in a chain of && or ||, and in what is one more or less.
func (s *schemata) binary(x *ast.BinaryExpr, done map[ast.Expr]bool) {
	switch x.Op {
	case token.LAND, token.LOR:
		if !done[x] {
			s.operands(x.Op, x, done)
		}
	case token.LSS, token.GTR:
		s.plant("off by one", x, "((", ") || isMutant(#) && ("+s.textOf(x.X)+") == ("+s.textOf(x.Y)+"))")
	case token.LEQ, token.GEQ:
		s.plant("off by one", x, "((", ") && !(isMutant(#) && ("+s.textOf(x.X)+") == ("+s.textOf(x.Y)+")))")
	case token.ADD, token.SUB:
		one, ok := x.Y.(*ast.BasicLit)
		t := s.info.Types[x]
		if !ok || one.Value != "1" || t.Value != nil {
			return
		}
		back := map[token.Token]string{token.ADD: "-", token.SUB: "+"}[x.Op]
		inPackage := func(p *types.Package) string { return p.Name() }
		s.plant("off by one", x, "((", ") "+back+" "+types.TypeString(t.Type, inPackage)+"(mutantOne(#)))")
	}
}

func (s *schemata) operands(op token.Token, x ast.Expr, done map[ast.Expr]bool) {
	if b, ok := x.(*ast.BinaryExpr); ok && b.Op == op {
		done[b] = true
		s.operands(op, b.X, done)
		s.operands(op, b.Y, done)
		return
	}
	prefix := "(isMutant(#) || ("
	if op == token.LOR {
		prefix = "(!isMutant(#) && ("
	}
	s.plant("drop operand", x, prefix, "))")
}

// table is the literal of a variable that is a slice of structures.
func (s *schemata) table(v *ast.ValueSpec) (*ast.CompositeLit, bool) {
	if len(v.Values) != 1 {
		return nil, false
	}
	c, ok := v.Values[0].(*ast.CompositeLit)
	if !ok {
		return nil, false
	}
	slice, ok := s.info.Types[c].Type.Underlying().(*types.Slice)
	if !ok {
		return nil, false
	}
	_, ok = slice.Elem().Underlying().(*types.Struct)
	return c, ok
}

// rows gives a table the numbers that mutantRows expects: first one for each row that goes, then one for each pair.
func (s *schemata) rows(table *ast.CompositeLit) {
	first := s.after + len(s.mutants) + 1
	for _, row := range table.Elts {
		s.add("drop row `"+s.oneLine(row)+"`", row)
	}
	for n, row := range table.Elts[1:] {
		s.add("swap rows `"+s.oneLine(table.Elts[n])+"` and `"+s.oneLine(row)+"`", row)
	}
	s.edit(first, table, "mutantRows(#, ", ")")
}

func (s *schemata) isBool(x ast.Expr) bool {
	t := s.info.Types[x]
	b, ok := t.Type.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsBoolean != 0 && t.Value == nil
}

// oneLine is a node's source without its line breaks.
func (s *schemata) oneLine(n ast.Node) string { return strings.Join(strings.Fields(s.textOf(n)), " ") }
