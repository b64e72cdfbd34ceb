package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is one planted fault. Its number says to the compiled package which one is active; its name says what it is,
// without a line number, so that it stays the same while code around it changes.
type mutant struct {
	number int
	name   string
	at     token.Position
}

func (m mutant) String() string {
	return fmt.Sprintf("%s:%d: %s", m.at.Filename, m.at.Line, m.name)
}

// schemata is the package with all its mutants in it, each asleep until isMutant says its number.
type schemata struct {
	*source
	prefix  string // of the mutants' names
	after   int    // the numbers that another package has
	name    string // of the declaration that is operated on
	mutants []mutant
	edits   map[string][]edit
	names   map[string]int
}

// edit puts text before and after a part of a file.
type edit struct {
	from, to       int
	prefix, suffix string
}

func schemataOf(src *source, found []declaration, prefix string, after int) *schemata {
	s := &schemata{source: src, prefix: prefix, after: after, edits: map[string][]edit{}, names: map[string]int{}}
	for _, d := range found {
		s.operate(d)
	}
	return s
}

// plant makes the mutant of an expression; # in the texts becomes its number.
func (s *schemata) plant(operator string, x ast.Expr, prefix, suffix string) {
	s.edit(s.add(operator+" `"+s.oneLine(x)+"`", x), x, prefix, suffix)
}

func (s *schemata) add(what string, at ast.Node) (number int) {
	name := s.prefix + s.name + ": " + what
	s.names[name]++
	if n := s.names[name]; n > 1 {
		name += fmt.Sprintf(" (%d)", n)
	}
	number = s.after + len(s.mutants) + 1
	s.mutants = append(s.mutants, mutant{number, name, s.fset.Position(at.Pos())})
	return number
}

func (s *schemata) edit(number int, x ast.Node, prefix, suffix string) {
	in := func(text string) string { return strings.ReplaceAll(text, "#", fmt.Sprint(number)) }
	from, to := s.fset.Position(x.Pos()), s.fset.Position(x.End())
	s.edits[from.Filename] = append(s.edits[from.Filename], edit{from.Offset, to.Offset, in(prefix), in(suffix)})
}

// apply writes the edits into a file's text. Of two at one place the larger part is outside, and of two of one part the
// later.
func apply(text []byte, edits []edit) []byte {
	type insertion struct {
		at, order int
		text      string
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Compare(a.to-a.from, b.to-b.from) }) // inner first
	var all []insertion
	for n, e := range edits {
		all = append(all, insertion{e.from, len(edits) - n, e.prefix}, insertion{e.to, n - len(edits), e.suffix})
	}
	slices.SortStableFunc(all, func(a, b insertion) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.order, b.order))
	})
	var out []byte
	at := 0
	for _, i := range all {
		out = append(append(out, text[at:i.at]...), i.text...)
		at = i.at
	}
	return append(out, text[at:]...)
}

// awake is the file that makes the mutants selectable.
const awake = `package %s

import (
	"os"
	"strconv"
)

var activeMutant, _ = strconv.Atoi(os.Getenv("` + activeMutant + `"))

func isMutant(n int) bool { return n == activeMutant }

func mutantOne(n int) int {
	if isMutant(n) {
		return 1
	}
	return 0
}

func mutantRows[T any](first int, rows []T) []T {
	switch n := activeMutant - first; {
	case n < 0 || n >= 2*len(rows)-1:
	case n < len(rows):
		return append(rows[:n:n], rows[n+1:]...)
	default:
		n -= len(rows)
		rows[n], rows[n+1] = rows[n+1], rows[n]
	}
	return rows
}
`

// activeMutant is the environment variable that names the active mutant; 0: none.
const activeMutant = "QUORATE_MUTANT"

// write puts the packages with their mutants into a folder, and says to the go command where: nothing in the repository
// is touched.
func write(folder string, packages ...*schemata) (overlay string, err error) {
	replace := map[string]string{}
	for _, s := range packages {
		put := func(name string, text []byte) error {
			to := filepath.Join(folder, s.types.Name()+"_"+name)
			replace[filepath.Join(s.dir, name)] = to
			return os.WriteFile(to, text, 0o600)
		}
		for _, name := range slices.Sorted(maps.Keys(s.edits)) {
			if err := put(name, apply(s.text[name], s.edits[name])); err != nil {
				return "", fmt.Errorf("write the mutants: %w", err)
			}
		}
		if err := put("mutants_awake.go", fmt.Appendf(nil, awake, s.types.Name())); err != nil {
			return "", fmt.Errorf("write the mutants: %w", err)
		}
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(folder, "overlay.json")
	return overlay, os.WriteFile(overlay, b, 0o600)
}
