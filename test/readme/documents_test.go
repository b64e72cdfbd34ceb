// Package readme holds the documents to the code: what a program can print or return has its line in them, what they
// show is run, and nothing in them leads nowhere.
package readme

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/health"
)

// top is the repository's top folder, seen from this one.
const top = "../.."

func TestEachBlockedNameHasItsEntryInTheRunbook(t *testing.T) {
	names := blockedNames(t)
	if len(names) < 30 {
		t.Fatalf("found only %v in the code: this test no longer knows how a wait is named", names)
	}
	// A wait that health does not know would be nobody's cause and nobody's consequence.
	for _, n := range names {
		if !health.Known(n) {
			t.Errorf("internal/health/catalog.go lacks the wait %s", n)
		}
	}
	names = append(names, health.Own...)
	var entries []string
	for _, m := range regexp.MustCompile("(?m)^### `([a-z0-9-]+)`$").FindAllStringSubmatch(read(t, "docs/runbook.md"),
		-1) {
		entries = append(entries, m[1])
	}
	for _, n := range names {
		if !slices.Contains(entries, n) {
			t.Errorf("docs/runbook.md has no entry ### `%s`, which `quorate status` or `health` can print", n)
		}
	}
	for _, e := range entries {
		if !slices.Contains(names, e) {
			t.Errorf("docs/runbook.md has an entry ### `%s`, which nothing prints", e)
		}
	}
}

// Who is paged knows a symptom, not a name.
func TestASymptomLeadsToEachEntryOfTheRunbook(t *testing.T) {
	page := read(t, "docs/runbook.md")
	_, symptoms, ok := strings.Cut(page, "\n## Symptoms\n")
	symptoms, _, closed := strings.Cut(symptoms, "\n## ")
	if !ok || !closed {
		t.Fatal("docs/runbook.md does not begin with symptoms")
	}
	for _, n := range append(blockedNames(t), health.Own...) {
		if !strings.Contains(symptoms, "(#"+n+")") {
			t.Errorf("no symptom in docs/runbook.md leads to the entry %s", n)
		}
	}
}

// blockedNames are the names of all waits: in etcdmember the first argument of wait, halt, hold, blocked and Waiting,
// below agent of HoldFor and HoldWhile, and the Name of a Wait that is made as it stands.
func blockedNames(t *testing.T) []string {
	constants, found := map[string]string{}, map[string]bool{}
	files := slices.Concat(parseFolder(t, "etcdmember"), parseFolder(t, "etcdmember/table"),
		parseFolder(t, "etcdmember/leader"), parseFolder(t, "agent"), parseFolder(t, "agent/*"),
		parseFolder(t, "addons/plan"))
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == len(v.Names) {
				for i, name := range v.Names {
					constants[name.Name] = literal(v.Values[i])
				}
			}
			return true
		})
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			of := waitName(n)
			if of == nil {
				return true
			}
			name := literal(of)
			if name == "" {
				name = constants[nameOf(of)]
			}
			if name != "" {
				found[name] = true
			}
			return true
		})
	}
	return slices.Sorted(maps.Keys(found))
}

// waitName is what a wait is called by, where n begins one; nil: it does not.
func waitName(n ast.Node) ast.Expr {
	begins := []string{"wait", "halt", "hold", "blocked", "Waiting", "HoldFor", "HoldWhile"}
	switch n := n.(type) {
	case *ast.CallExpr:
		if slices.Contains(begins, nameOf(n.Fun)) && len(n.Args) > 1 {
			return n.Args[0]
		}
	case *ast.CompositeLit:
		for _, e := range n.Elts {
			if pair, ok := e.(*ast.KeyValueExpr); ok && nameOf(n.Type) == "Wait" && nameOf(pair.Key) == "Name" {
				return pair.Value
			}
		}
	}
	return nil
}

func TestTheExitCodesAreListed(t *testing.T) {
	declared, used := map[string]int{}, map[string]int{}
	for _, f := range parseFolder(t, "cmd/quorate") {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, name := range n.Names {
					if !strings.HasPrefix(name.Name, "exit") || i >= len(n.Values) {
						continue
					}
					if v, ok := n.Values[i].(*ast.BasicLit); ok { // exitQuiet, a negative one, is no code
						declared[name.Name], _ = strconv.Atoi(v.Value)
						used[name.Name]-- // the declaration itself
					}
				}
			case *ast.Ident:
				used[n.Name]++
			}
			return true
		})
	}
	if len(declared) < 8 {
		t.Fatalf("found only %v in cmd/quorate: this test no longer knows how exit codes are named", declared)
	}
	const doc = "docs/runbook.md"
	listed, known := exitTable(t, doc), map[int]bool{}
	for name, code := range declared {
		if row, ok := listed[code]; used[name] > 0 != ok {
			t.Errorf("%s: exit code %d (%s) is used %d times in cmd/quorate; its line in the table: %q", doc, code,
				name, used[name], row)
		}
		known[code] = true
	}
	for code, row := range listed {
		if !known[code] {
			t.Errorf("%s: exit code %d does not exist: %q", doc, code, row)
		}
	}
}

// exitTable is the table of exit codes of a document.
func exitTable(t *testing.T, doc string) map[int]string {
	out := map[int]string{}
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+) \| (.+) \|$`).FindAllStringSubmatch(read(t, doc), -1) {
		code, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		out[code] = m[2]
	}
	return out
}

func TestTheRoomsAreInTheDocuments(t *testing.T) {
	all := rooms(t)
	if len(all) < 12 {
		t.Fatalf("found only %v: this test no longer knows where packages are", all)
	}
	for _, doc := range []string{"README.md", "docs/ARCHITECTURE.md"} {
		text := read(t, doc)
		for _, room := range all {
			if !strings.Contains(text, "`"+room+"`") {
				t.Errorf("%s does not say what %s is", doc, room)
			}
		}
	}
}

// rooms are the folders of the floor plan: those at the top that hold Go, and one level below cmd and internal.
func rooms(t *testing.T) []string {
	found := map[string]bool{}
	for _, pattern := range []string{"*/*.go", "cmd/*/*.go", "internal/*/*.go"} {
		files, err := filepath.Glob(filepath.Join(top, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			found[strings.TrimPrefix(filepath.Dir(f), top+"/")] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// A page that says what a test shows names one that is there.
func TestTheTestsThatPagesNameExist(t *testing.T) {
	there := map[string]bool{}
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != top && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin") {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)\w+)\(`).FindAllSubmatch(text, -1) {
			there[string(m[1])] = true
		}
		return err
	})
	if err != nil || len(there) < 100 {
		t.Fatalf("%d tests are there: %v", len(there), err)
	}
	found := 0
	for _, doc := range documents(t) {
		for _, m := range regexp.MustCompile("`((?:Test|Benchmark|Fuzz)[A-Z0-9]\\w+)`").FindAllStringSubmatch(read(t, doc),
			-1) {
			found++
			// A page may name many cases by their beginning.
			begins := func(name string) bool { return strings.HasPrefix(name, m[1]) }
			if !there[m[1]] && !slices.ContainsFunc(slices.Collect(maps.Keys(there)), begins) {
				t.Errorf("%s names %s, which is no test", doc, m[1])
			}
		}
	}
	if found < 30 {
		t.Errorf("found only %d tests in the pages: this test no longer knows how a page names one", found)
	}
}

func TestLinksBetweenDocumentsLead(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]*)(#[^)]*)?\)`)
	for _, doc := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, doc), -1) {
			target := filepath.Join(top, filepath.Dir(doc), m[1])
			if m[1] == "" { // within the page
				target = filepath.Join(top, doc)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", doc, m[1], err)
				continue
			}
			if anchor := strings.TrimPrefix(m[2], "#"); anchor != "" && !slices.Contains(anchors(t, target), anchor) {
				t.Errorf("%s links to %s: %s has no such heading", doc, m[0], target)
			}
		}
	}
}

// documents are the pages that people read, relative to the repository's top.
func documents(t *testing.T) []string {
	var out []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/decisions/*.md", "etcdmember/*.md",
		"images/*.md"} {
		found, err := filepath.Glob(filepath.Join(top, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			out = append(out, strings.TrimPrefix(f, top+"/"))
		}
	}
	return out
}

// anchors are the headings of a page, as a forge makes links of them.
func anchors(t *testing.T, path string) []string {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	drop := regexp.MustCompile(`[^a-z0-9 -]`)
	var out []string
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(string(b), -1) {
		out = append(out, strings.ReplaceAll(drop.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return out
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(top, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// parseFolder parses a package's files, without its tests.
func parseFolder(t *testing.T, folder string) []*ast.File {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(top, folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var out []*ast.File
	for _, p := range paths {
		if strings.HasSuffix(p, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, f)
	}
	return out
}

// nameOf is the last name of what is called.
func nameOf(fun ast.Expr) string {
	switch f := fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// literal is the text of a string literal; empty for anything else.
func literal(e ast.Expr) string {
	if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
		if s, err := strconv.Unquote(l.Value); err == nil {
			return s
		}
	}
	return ""
}
