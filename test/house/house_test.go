// Package house holds the rules that the tree itself keeps: what may import what, what is pure, what has a comment, how
// wide a line is. It starts no master and needs nothing built, so that `make lint` can run it.
package house

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/quorate/quorate/"

// floors is the floor plan, docs/ARCHITECTURE.md: a package imports only what stands below it.
var floors = []string{
	"cmd/quorate", "cmd/localgce",
	"cmd/quorate/addonset", "cmd/quorate/gathering", "cmd/quorate/observer", "cmd/quorate/restoring",
	"cmd/quorate/statustext", "cmd/quorate/recordtext", "cmd/quorate/kubeconfig", "cmd/quorate/terminal/terminaltest",
	"cmd/quorate/tone",
	"cmd/quorate/cluster", "cmd/quorate/command", "cmd/quorate/terminal", "cmd/quorate/master", "cmd/quorate/version",
	"cmd/quorate/fault",
	"test/bench", "test",
	"agent", "agent/telling", "agent/leaders", "agent/certificates", "agent/status", "agent/accounts", "agent/datadisk",
	"agent/endpoint", "agent/kubelet", "agent/election", "agent/lease", "controlplane", "addons", "addons/plan",
	"addons/examples", "fleet/show", "fleet", "fleet/plan", "fleet/token",
	"etcdmember/ringtest",
	"etcdmember", "etcdmember/acts", "etcdmember/rebuild", "etcdmember/snapshot", "etcdmember/restoredir",
	"etcdmember/member", "etcdmember/datadir", "etcdmember/etcdtest", "etcdmember/hosts",
	"etcdmember/order", "etcdmember/explain", "etcdmember/leader", "etcdmember/table",
	"certs", "systemd", "systemd/kubeletwatch", "supervisor", "images",
	"internal/record/bucket/buckettest", "internal/record/bucket", "internal/gce", "internal/setup", "internal/record",
	"internal/health", "internal/report", "internal/support", "internal/lastwords",
	"internal/localgce", "internal/localgce/balancer", "internal/localgce/firewall",
	"internal/localgce/network", "internal/localgce/guest",
	"internal/localgce/disk", "internal/localgce/cgroup", "internal/localgce/names", "internal/localgce/host",
	"internal/localgce/tree", "internal/localgce/unitbus",
	"internal/localgce/compute", "internal/localgce/buckets", "internal/localgce/metadata",
	"internal/localgce/settings", "internal/localgce/fault", "internal/localgce/latency", "internal/localgce/answer",
	"internal/localgce/resolver", "internal/localgce/instance",
	"internal/localroute", "internal/cri",
	"internal/waits", "internal/replica",
	"internal/pattern", "internal/durable", "internal/asynclog", "internal/backoff", "internal/local", "internal/realtest",
}

// soleImporters say which rooms alone may import a library, so that its ways stay there.
var soleImporters = map[string]string{
	"github.com/spf13/cobra":                     "cmd",
	"go.etcd.io/etcd/server/v3":                  "etcdmember",
	"go.etcd.io/etcd/client/v3":                  "etcdmember",
	"github.com/cloudflare/cfssl":                "certs",
	"filippo.io/age":                             "certs",
	"github.com/coreos/go-systemd":               "systemd",
	"cloud.google.com/go/auth":                   "internal/gce",
	"cloud.google.com/go/compute":                "internal/gce",
	"cloud.google.com/go/storage":                "", // it brings gRPC's service mesh
	"google.golang.org/api/compute":              "internal/gce",
	"google.golang.org/api/cloudkms":             "internal/gce",
	"google.golang.org/api/iam":                  "internal/gce",
	"google.golang.org/api/cloudresourcemanager": "internal/gce",
	"google.golang.org/api/storage":              "internal/record/bucket",
	"github.com/vishvananda/netlink":             "internal/localroute",
	"k8s.io/cri-api":                             "internal/cri",
	"k8s.io/klog":                                "cmd/quorate",
	"k8s.io/client-go/kubernetes":                "agent fleet/token",
	"k8s.io/client-go/tools/leaderelection":      "agent",
	"github.com/fsouza/fake-gcs-server":          "internal/localgce/buckets",
	"github.com/in-toto/attestation":             "images/describe",
	"github.com/spdx/tools-golang":               "images/describe",
	"github.com/fluxcd":                          "addons",
	"sigs.k8s.io/controller-runtime":             "addons",
	"sigs.k8s.io/kustomize":                      "addons",
	"github.com/rogpeppe/go-internal":            "",
}

// testRooms are what tests of several packages share: no program imports them.
var testRooms = []string{"cmd/quorate/terminal/terminaltest", "etcdmember/etcdtest",
	"internal/record/bucket/buckettest", "internal/realtest"}

// strangers are packages that a package must not know, although the floor plan would let it.
var strangers = map[string][]string{
	"agent": {"internal/gce", "internal/record", "internal/record/bucket", "systemd", "internal/localgce",
		"internal/localroute", "internal/cri"},
	"agent/datadisk":     {"internal/gce"},
	"agent/certificates": {"internal/gce", "internal/record", "internal/record/bucket"},
	"agent/endpoint":     {"internal/gce", "internal/localroute"},
	"agent/kubelet":      {"systemd", "internal/cri"},
	"etcdmember":         {"internal/record/bucket"},
	// What Google answers knows nothing of the machine, and what runs in a VM nothing of what serves it.
	"internal/localgce/compute":  append([]string{"internal/localgce/buckets"}, ofTheMachine...),
	"internal/localgce/buckets":  ofTheMachine,
	"internal/localgce/metadata": append([]string{"internal/localgce/compute"}, ofTheMachine...),
	"internal/localgce/settings": ofTheMachine,
	"internal/localgce/fault":    append([]string{"internal/localgce/instance"}, ofTheMachine...),
	"internal/localgce/disk":     {"internal/localgce/names", "internal/localgce/instance"},
	"internal/localgce/network":  {"internal/localgce/names", "internal/localgce/disk"},
	"internal/localgce/guest":    {"internal/localgce/network", "internal/localgce/disk", "internal/localgce/names"},
}

// ofTheMachine are the parts of a local project that its services do without.
var ofTheMachine = []string{"internal/localgce/network", "internal/localgce/balancer", "internal/localgce/guest",
	"internal/localgce/disk", "internal/localgce/cgroup", "internal/localgce/names", "internal/localgce/host"}

type listed struct {
	ImportPath, Dir, Name string
	GoFiles, Imports      []string
}

func packages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,Name,GoFiles,Imports", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p listed
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		p.ImportPath = strings.TrimPrefix(p.ImportPath, module)
		all = append(all, p)
	}
	return all
}

func TestImportsPointDownTheFloorPlan(t *testing.T) {
	for _, p := range packages(t) {
		floor := floorOf(p.ImportPath)
		if floor < 0 {
			t.Errorf("%s stands in no room of the floor plan", p.ImportPath)
		}
		for _, imported := range p.Imports {
			below, ours := strings.CutPrefix(imported, module)
			if !ours {
				continue
			}
			if floorOf(below) <= floor && roomOf(below) != roomOf(p.ImportPath) {
				t.Errorf("%s imports %s, which does not stand below it", p.ImportPath, below)
			}
			if slices.Contains(strangers[p.ImportPath], below) {
				t.Errorf("%s imports %s, which it must not know: it states what it needs as an interface", p.ImportPath,
					below)
			}
			if slices.Contains(testRooms, below) {
				t.Errorf("%s imports %s, which is for tests", p.ImportPath, below)
			}
			local := strings.HasPrefix(p.ImportPath, "internal/localgce")
			if strings.HasPrefix(below, "internal/localgce") && !local && p.ImportPath != "cmd/localgce" &&
				!strings.HasPrefix(p.ImportPath, "test") && !slices.Contains(testRooms, p.ImportPath) {
				t.Errorf("%s imports %s, which is for the demo and the tests", p.ImportPath, below)
			}
		}
	}
}

// Reports and events are for people. What decides cannot hold one: its packages do not know what one is, directly or by
// what they import.
func TestNothingThatDecidesKnowsReports(t *testing.T) {
	cmd := exec.Command("go", "list", "-f", "{{.ImportPath}} {{join .Deps \" \"}}", "./etcdmember/...",
		"./internal/record", "./agent/lease", "./addons/plan", "./systemd/kubeletwatch")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	found := 0
	for line := range strings.Lines(string(out)) {
		deps := strings.Fields(line)
		path := strings.TrimPrefix(deps[0], module)
		if slices.Contains(testRooms, path) {
			continue
		}
		found++
		for _, dep := range deps[1:] {
			if dep == module+"internal/report" || dep == module+"internal/health" {
				t.Errorf("%s knows %s", path, dep)
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d packages decide: this test no longer knows them", found)
	}
}

func TestEachLibraryHasOneImporter(t *testing.T) {
	for _, p := range packages(t) {
		for _, imported := range p.Imports {
			for library, rooms := range soleImporters {
				in := imported == library || strings.HasPrefix(imported, library+"/")
				may := slices.ContainsFunc(append(strings.Fields(rooms), "test"),
					func(room string) bool { return strings.HasPrefix(p.ImportPath, room) })
				if in && !may {
					t.Errorf("%s imports %s; only %q may", p.ImportPath, imported, rooms)
				}
			}
		}
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for _, p := range packages(t) {
		var doc string
		for _, file := range p.GoFiles {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil,
				parser.ParseComments|parser.PackageClauseOnly)
			if err != nil {
				t.Fatal(err)
			}
			if f.Doc != nil {
				doc += f.Doc.Text()
			}
		}
		if len(p.GoFiles) > 0 && len(doc) < 40 {
			t.Errorf("%s has no package comment that says what it is", p.ImportPath)
		}
	}
}

func TestEveryExportedNameHasAComment(t *testing.T) {
	for _, p := range packages(t) {
		for _, file := range p.GoFiles {
			path := filepath.Join(p.Dir, file)
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				for _, name := range uncommented(d) {
					t.Errorf("%s/%s: exported %s has no comment", p.ImportPath, file, name)
				}
			}
		}
	}
}

// etcdmember.Config.Tests makes a member deaf, or takes its history: no program sets any of it.
func TestNoProgramSetsTheSettingsOfTests(t *testing.T) {
	for _, p := range packages(t) {
		for _, file := range p.GoFiles {
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, file), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				var set []ast.Expr
				switch n := n.(type) {
				case *ast.KeyValueExpr:
					set = []ast.Expr{n.Key}
				case *ast.AssignStmt:
					set = n.Lhs
				}
				for _, x := range set {
					s := types.ExprString(x)
					if s == "Tests" || strings.HasSuffix(s, ".Tests") || strings.Contains(s, ".Tests.") {
						t.Errorf("%s sets %s", fset.Position(x.Pos()), s)
					}
				}
				return true
			})
		}
	}
}

// uncommented are the exported names of a declaration that no comment stands above. A method that only fulfils one of
// the standard library's interfaces needs none.
func uncommented(d ast.Decl) []string {
	wellKnown := []string{"Error", "String", "Unwrap", "Read", "Write", "Close", "RoundTrip", "MarshalJSON"}
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && !(d.Recv != nil && slices.Contains(wellKnown, d.Name.Name)) {
			return []string{d.Name.Name}
		}
	case *ast.GenDecl:
		var out []string
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() && d.Doc == nil && s.Doc == nil {
					out = append(out, s.Name.Name)
				}
			case *ast.ValueSpec:
				if s.Names[0].IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
					out = append(out, s.Names[0].Name)
				}
			}
		}
		return out
	}
	return nil
}

// floorOf is the floor whose name is the longest that the path begins with; -1: none.
func floorOf(path string) int {
	floor := -1
	for n, f := range floors {
		if (path == f || strings.HasPrefix(path, f+"/")) && (floor < 0 || len(f) > len(floors[floor])) {
			floor = n
		}
	}
	return floor
}

func roomOf(path string) string {
	if i := floorOf(path); i >= 0 {
		return floors[i]
	}
	return path
}
