package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// source is a package with its types.
type source struct {
	dir   string
	fset  *token.FileSet
	files map[string]*ast.File
	text  map[string][]byte
	info  *types.Info
	types *types.Package
}

// goPackage is what `go list` says of a package: Export is the compiled one's file.
type goPackage struct {
	Dir, ImportPath, Export string
	GoFiles                 []string
	DepOnly                 bool
}

// load reads a package and finds its types, with its imports as the compiler has them.
func load(ctx context.Context, path string) (*source, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-export", "-deps", "-json=Dir,ImportPath,Export,GoFiles,DepOnly", path)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", path, err)
	}
	exports := map[string]string{}
	var own goPackage
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("list %s: %w", path, err)
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly {
			own = p
		}
	}
	return check(own.Dir, own.GoFiles, func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
}

// check parses the files of a folder and finds their types.
func check(dir string, names []string, imported importer.Lookup) (*source, error) {
	s := &source{dir: dir, fset: token.NewFileSet(), files: map[string]*ast.File{}, text: map[string][]byte{},
		info: &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{},
			Types: map[ast.Expr]types.TypeAndValue{}}}
	var files []*ast.File
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		f, err := parser.ParseFile(s.fset, name, text, 0)
		if err != nil {
			return nil, err
		}
		s.files[name], s.text[name] = f, text
		files = append(files, f)
	}
	config := types.Config{Importer: importer.ForCompiler(s.fset, "gc", imported)}
	var err error
	s.types, err = config.Check(files[0].Name.Name, s.fset, files, s.info)
	return s, err
}

// declaration is a function or a variable of the package: what belongs to one name.
type declaration struct {
	name string
	node ast.Node
}

// reachable are the declarations that the roots, by their names, come to, in the order of the files.
func (s *source) reachable(roots []string) (out []declaration) {
	all := map[types.Object]declaration{}
	var order []types.Object
	for _, f := range s.sorted() {
		for _, d := range f.Decls {
			s.declare(d, func(o types.Object, d declaration) {
				all[o] = d
				order = append(order, o)
			})
		}
	}
	seen := map[types.Object]bool{}
	var visit func(types.Object)
	visit = func(o types.Object) {
		d, ours := all[o]
		if !ours || seen[o] {
			return
		}
		seen[o] = true
		ast.Inspect(d.node, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				visit(s.info.Uses[id])
			}
			return true
		})
	}
	for _, o := range order {
		if slices.Contains(roots, all[o].name) {
			visit(o)
		}
	}
	for _, o := range order {
		if seen[o] {
			out = append(out, all[o])
		}
	}
	return out
}

// calls are the functions and methods of another package that are named here.
func (s *source) calls(path string) (out []string) {
	for _, o := range s.info.Uses {
		f, ok := o.(*types.Func)
		if !ok || f.Pkg() == nil || !strings.HasSuffix(f.Pkg().Path(), strings.TrimPrefix(path, ".")) {
			continue
		}
		name := f.Name()
		if recv := f.Signature().Recv(); recv != nil {
			name = types.TypeString(recv.Type(), func(*types.Package) string { return "" }) + "." + name
		}
		out = append(out, strings.TrimPrefix(name, "*"))
	}
	return out
}

// sorted are the files in the order of their names.
func (s *source) sorted() (out []*ast.File) {
	for _, name := range slices.Sorted(maps.Keys(s.files)) {
		out = append(out, s.files[name])
	}
	return out
}

// declare finds the functions and variables that a declaration declares.
func (s *source) declare(d ast.Decl, found func(types.Object, declaration)) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		name := d.Name.Name
		if d.Recv != nil {
			name = strings.TrimPrefix(s.textOf(d.Recv.List[0].Type), "*") + "." + name
		}
		found(s.info.Defs[d.Name], declaration{name, d})
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			v, ok := spec.(*ast.ValueSpec)
			if !ok || d.Tok != token.VAR {
				continue
			}
			for _, id := range v.Names {
				found(s.info.Defs[id], declaration{id.Name, v})
			}
		}
	}
}

// textOf is a node's source.
func (s *source) textOf(n ast.Node) string {
	from, to := s.fset.Position(n.Pos()), s.fset.Position(n.End())
	return string(s.text[from.Filename][from.Offset:to.Offset])
}
