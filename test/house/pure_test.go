package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pure are the packages that decide, or hold what is decided on: the same input gives the same answer. They import one
// another, what pureImports names, and what stands beside them here, so they can neither read nor write nor ask.
var pure = map[string][]string{
	"addons/examples":      {"bytes", "embed", "text/template"},
	"addons/plan":          nil,
	"agent/lease":          nil,
	"etcdmember/explain":   nil,
	"etcdmember/leader":    nil,
	"etcdmember/order":     nil,
	"etcdmember/table":     nil,
	"fleet/plan":           nil,
	"internal/health":      nil,
	"internal/pattern":     {"sync"},
	"internal/record":      nil,
	"internal/report":      {"unicode", "unicode/utf8"},
	"internal/setup":       {"path"},
	"internal/support":     {"archive/tar", "bytes", "compress/gzip", "io"}, // a file in memory
	"systemd/kubeletwatch": nil,
	"internal/replica": { // it decodes and validates the Cluster document
		"bytes", "embed", "encoding/base64", "io", "net/url", "path/filepath", "reflect", "unicode/utf8",
		"go.yaml.in/yaml/v3", "k8s.io/apimachinery/pkg/util/validation", "k8s.io/apimachinery/pkg/util/validation/field",
		"k8s.io/client-go/util/cert",
	},
}

// pureImports are the standard library's packages that compute and do nothing else.
var pureImports = []string{
	"cmp", "encoding/json", "errors", "fmt", "iter", "maps", "net/netip", "regexp", "slices", "strconv", "strings",
	"time",
}

// clock is what of package time is not a value.
var clock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer"}

func TestWhatIsPureImportsNothingThatReadsOrAsks(t *testing.T) {
	for _, p := range packages(t) {
		more, ok := pure[p.ImportPath]
		if !ok {
			continue
		}
		for _, imported := range p.Imports {
			below, ours := strings.CutPrefix(imported, module)
			if _, isPure := pure[below]; ours && isPure {
				continue
			}
			if !slices.Contains(pureImports, imported) && !slices.Contains(more, imported) {
				t.Errorf("%s imports %s: it is pure, and can neither read nor write nor ask", p.ImportPath, imported)
			}
		}
		for _, file := range p.GoFiles {
			for _, at := range clockReads(t, filepath.Join(p.Dir, file)) {
				t.Errorf("%s reads the clock: it takes the time from its caller", at)
			}
		}
	}
}

// clockReads are the places in a file where it uses the clock.
func clockReads(t *testing.T, path string) (out []string) {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains(clock, s.Sel.Name) {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" {
				out = append(out, fset.Position(s.Pos()).String())
			}
		}
		return true
	})
	return out
}

// The tests of the deciders and of the acts are run after each change of them, so they must not wait for etcd to be
// compiled.
func TestTheTestsOfDecidersAndActsDoNotCompileEtcd(t *testing.T) {
	for _, name := range []string{"./etcdmember/table", "./etcdmember/leader", "./etcdmember/acts"} {
		cmd := exec.Command("go", "list", "-deps", "-test", name)
		cmd.Dir = "../.."
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		for p := range strings.Lines(string(out)) {
			if strings.HasPrefix(p, "go.etcd.io/") {
				t.Errorf("the tests of %s import %s", name, strings.TrimSpace(p))
			}
		}
	}
}
